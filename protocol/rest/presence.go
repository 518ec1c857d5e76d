package rest

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// A presenceRequest is the body of POST /sessions/{id}/presence.
type presenceRequest struct {
	api.PresenceNote
	UserID string `json:"userId,omitempty"` // the same as user
}

// presence notes where a user is, and answers with all users in the session.
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
	return httpapi.WriteJSON(w, http.StatusOK, api.Present{Present: all})
}

// present answers with the users in the session.
func (h *handler) present(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	all, err := h.Verbs.Present(r.Context(), id)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Present{Present: all})
}

// appendPresence appends a frame for each change. A frame has no id, because the change
// is not in the log: a client that reconnects receives all users again.
func appendPresence(b []byte, changes []tapedeck.Event) []byte {
	for i := range changes {
		e := &changes[i]
		data, _ := json.Marshal(api.PresenceFrame{Type: e.Type, Channel: e.Channel, Timestamp: e.Time.Format("2006-01-02T15:04:05.000Z"), Actor: e.Actor, Data: e.Data}) // it was checked when it arrived
		b = sse.AppendFrame(b, "", "presence", data)
	}
	return b
}
