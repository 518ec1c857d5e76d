package rest

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// started is the answer to a task.
type started struct {
	Session    string          `json:"session_id"`
	Invocation string          `json:"invocation_id"`
	Status     tapedeck.Status `json:"status"`
	Offset     int64           `json:"offset"` // of the first event of the invocation: follow the session from here
}

// A runRequest is the body of POST /sessions/run.
type runRequest struct {
	Task   string          `json:"task"`
	Agent  string          `json:"agent"`
	Thread string          `json:"thread"`
	Title  string          `json:"title"`
	Config json.RawMessage `json:"config"`
}

// run starts a task in a new session.
func (h *handler) run(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	in, err := decode[runRequest](h, w, r)
	if err != nil {
		return err
	}
	return h.start(w, r, api.Task{
		Text: in.Task, Agent: in.Agent, Thread: in.Thread, Title: in.Title, Config: given(in.Config),
	})
}

// A taskRequest is the body of POST /sessions/{id}/task and of POST /sessions/{id}/resume.
type taskRequest struct {
	Task   string          `json:"task"`
	Agent  string          `json:"agent"`
	Thread string          `json:"thread"`
	Config json.RawMessage `json:"config"`
}

// task starts the next task of a session.
func (h *handler) task(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[taskRequest](h, w, r)
	if err != nil {
		return err
	}
	return h.start(w, r, api.Task{
		Session: id, Text: in.Task, Agent: in.Agent, Thread: in.Thread, Config: given(in.Config),
	})
}

func (h *handler) start(w http.ResponseWriter, r *http.Request, t api.Task) error {
	s, err := h.Verbs.Start(r.Context(), t)
	if err != nil {
		return err
	}
	return writeStarted(w, s)
}

func writeStarted(w http.ResponseWriter, s api.Started) error {
	return httpapi.WriteJSON(w, http.StatusAccepted, started{s.Session, s.Invocation, tapedeck.StatusRunning, s.Offset})
}

// resume continues a run that was cancelled, interrupted or has failed.
func (h *handler) resume(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[taskRequest](h, w, r)
	if err != nil {
		return err
	}
	s, err := h.Verbs.Resume(r.Context(), api.Resume{
		Session: id, Agent: in.Agent, Text: in.Task, Thread: in.Thread, Config: given(in.Config),
	})
	if err != nil {
		return err
	}
	return writeStarted(w, s)
}

// cancelled is the answer to a cancel.
type cancelled struct {
	Session    string          `json:"session_id"`
	Invocation string          `json:"invocation_id"`
	Status     tapedeck.Status `json:"status"`
	Offset     int64           `json:"offset"` // of the terminal event
	Resumable  bool            `json:"resumable"`
}

// A cancelRequest is the body of POST /sessions/{id}/cancel.
type cancelRequest struct {
	Invocation string `json:"invocation"`
}

func (h *handler) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[cancelRequest](h, w, r)
	if err != nil {
		return err
	}
	if in.Invocation != "" {
		if err := tapedeck.CheckID("the invocation", in.Invocation); err != nil {
			return err
		}
	}
	c, err := h.Verbs.Cancel(r.Context(), id, in.Invocation)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, cancelled{id, c.Invocation, tapedeck.StatusCancelled, c.Offset, c.Resumable})
}

// An agentsAnswer is the answer to GET /agents.
type agentsAnswer struct {
	Agents []tapedeck.Agent `json:"agents"`
}

func (h *handler) agents(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	return httpapi.WriteJSON(w, http.StatusOK, agentsAnswer{httpapi.OrEmpty(h.Verbs.Agents())})
}
