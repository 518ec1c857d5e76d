package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// pageLimit is the most items of a page, and how many it has unless asked.
const (
	pageLimit   = 1000
	listDefault = 100
)

// A createRequest is the body of POST /sessions: the session, and labels that have
// members of their own.
type createRequest struct {
	api.NewSession
	Project string `json:"projectId,omitempty"` // the label of this name
	Task    string `json:"taskId,omitempty"`    // the label of this name
}

func (h *handler) create(w http.ResponseWriter, r *http.Request) error {
	if q := parseQuery(r); q.err != nil {
		return q.err
	}
	in, err := decodeOptional[createRequest](h, w, r)
	if err != nil {
		return err
	}
	in.Labels = withLabels(in.Labels, labelProject, in.Project, labelTask, in.Task)
	in.State = given(in.State)
	s, err := h.Verbs.Create(r.Context(), in.NewSession)
	if err != nil {
		return err
	}
	w.Header().Set("Location", Root+"/sessions/"+s.ID)
	return writeJSON(w, http.StatusCreated, s)
}

// known are the statuses that a list can be asked for.
var known = []string{
	string(tapedeck.StatusIdle), string(tapedeck.StatusPending), string(tapedeck.StatusRunning),
	string(tapedeck.StatusComplete), string(tapedeck.StatusFailed), string(tapedeck.StatusCancelled),
	string(tapedeck.StatusInterrupted),
}

// listClosed is what a list can be asked for beside a status: sessions that are
// closed, whatever their runs have come to.
const listClosed = "closed"

var listParameters = []string{
	"status", "agent", "owner", "parent", "from", "to", "q", "cursor", "limit", labelProject, labelTask, "label", "summary",
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, listParameters...)
	f := tapedeck.Filter{
		Labels: q.labels(),
		Status: tapedeck.Status(q.one("status", "", append([]string{listClosed}, known...)...)),
		Agent:  q.string("agent"), Owner: q.string("owner"), Parent: q.id("parent"),
		From: q.time("from"), To: q.time("to"),
		Query: q.string("q"), Cursor: q.string("cursor"), Limit: q.limit(listDefault, pageLimit),
	}
	summary := q.flag("summary")
	if q.err != nil {
		return q.err
	}
	if f.Closed = f.Status == listClosed; f.Closed {
		f.Status = ""
	}
	if err := h.said(r.Context(), &f); err != nil {
		return err
	}
	sessions, next, err := h.Sessions.List(r.Context(), f)
	if err != nil {
		return err
	}
	out := api.Sessions{Sessions: make([]api.SessionRow, len(sessions)), Next: next}
	for i := range sessions {
		out.Sessions[i].Session = sessions[i]
	}
	if summary {
		if out.Sessions, err = h.withSummaries(r.Context(), out.Sessions); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, out)
}

func (h *handler) show(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	s, err := h.Sessions.Head(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s)
}

func (h *handler) rename(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.Rename](h, w, r)
	if err != nil {
		return err
	}
	in.Session = id
	s, err := h.Verbs.Rename(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s)
}

func (h *handler) close(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decodeOptional[api.Close](h, w, r)
	if err != nil {
		return err
	}
	if err := h.Verbs.Close(r.Context(), id, in.Actor); err != nil {
		return err
	}
	return h.show(w, r)
}

func (h *handler) delete(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	if err := h.Verbs.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
