package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// attendance is what the engine knows of who is in a session.
type attendance interface {
	Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error)
	Present(ctx context.Context, session string) ([]payload.Presence, error)
	WatchPresence(session string) api.PresenceWatcher
}

// A presenceRequest is the body of POST /sessions/{id}/presence.
type presenceRequest struct {
	api.PresenceNote
	UserID string `json:"userId,omitempty"` // the same as user
}

// presence takes down where somebody is, and tells them who else is there.
func (h *handler) presence(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[presenceRequest](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.User = id, cmp.Or(in.User, in.UserID)
	all, err := h.Verbs.Presence(r.Context(), in.PresenceNote)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Present{Present: all})
}

// present tells who is there.
func (h *handler) present(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	all, err := h.Verbs.Present(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Present{Present: all})
}

// appendPresence appends a frame for each change. It has no id, for it is not in
// the log: a client that comes again is told anew who is there.
func appendPresence(b []byte, changes []tapedeck.Event) []byte {
	for i := range changes {
		e := &changes[i]
		data, _ := json.Marshal(api.PresenceFrame{Type: e.Type, Channel: e.Channel, Timestamp: e.Time.Format("2006-01-02T15:04:05.000Z"), Actor: e.Actor, Data: e.Data}) // all of it was checked when it came
		b = sse.AppendFrame(b, "", "presence", data)
	}
	return b
}
