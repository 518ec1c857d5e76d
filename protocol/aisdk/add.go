package aisdk

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// addMessages appends the new messages of a front end and starts no run: for an agent
// that runs elsewhere, whose stream [handler.ingest] records. It reverts what a run here
// would revert.
func (h *handler) addMessages(w http.ResponseWriter, r *http.Request) error {
	id, err := chat(r)
	in := new(input)
	if err == nil {
		err = h.readJSON(w, r, in)
	}
	if err != nil {
		return err
	}
	head, now, err := h.now(r.Context(), id)
	if err != nil {
		return err
	}
	fresh, back, err := in.news(id, &now)
	if err != nil {
		return err
	}
	if open, busy := head.Run(tapedeck.MainThread); busy && (len(fresh) > 0 || back != nil) {
		return tapedeck.Errorf(tapedeck.Conflict, "chat %s is busy with %s", id, open.Invocation).
			WithHint("resume its stream, or stop it with POST %s/{agent}/%s/stop", Root, id)
	}
	var events []tapedeck.Event
	for i := range fresh {
		if err := fresh[i].Check(); err != nil {
			return err
		}
		events = append(events, payload.NewEvent(payload.MessageAdded{Message: fresh[i]}))
	}
	if back != nil {
		if _, err := h.Verbs.Rewind(r.Context(), *back); err != nil {
			return err
		}
	}
	at := head.Head
	if len(events) > 0 {
		done, err := h.append(r.Context(), id, events)
		if err != nil {
			return err
		}
		at = done.Head
	}
	return httpapi.WriteJSON(w, http.StatusOK, struct {
		Added int   `json:"added"`
		Head  int64 `json:"head"`
	}{len(events), at})
}

// news returns the messages that the log does not have. If the last message is a user's that
// the log has and the client wants another answer to it, or has edited it, that message is
// among them, and back is the rewind that reverts the old one.
func (in *input) news(session string, now *view.Snapshot) (fresh []payload.Message, back *api.Rewind, err error) {
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == payload.RoleUser {
		last := &in.Messages[n-1]
		if asked := findMessage(now, last.ID); asked != nil && in.again(asked, now) {
			fresh, err = last.logged()
			return fresh, &api.Rewind{Session: session, Thread: tapedeck.MainThread, ToOffset: &asked.Offset}, err
		}
	}
	fresh, err = in.fresh(now)
	return fresh, nil, err
}

// again reports whether a message that the log has must be answered again. A request that is
// sent twice is no such wish, unless the answer to the first one is not whole.
func (in *input) again(asked *view.Message, now *view.Snapshot) bool {
	if in.Trigger == regenerate || !in.Messages[len(in.Messages)-1].says(asked) {
		return true
	}
	for i := range now.Runs {
		if run := &now.Runs[i]; run.Offset > asked.Offset {
			return run.Status != tapedeck.StatusRunning && run.Status != tapedeck.StatusComplete
		}
	}
	return false
}
