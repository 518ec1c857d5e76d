package rest

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// A present is the answer to the requests below /sessions/{id}/presence.
type present struct {
	Present []payload.Presence `json:"present"`
}

// A presenceRequest is the body of POST /sessions/{id}/presence.
type presenceRequest struct {
	Action api.PresenceAction `json:"action"`
	User   string             `json:"user"`
	UserID string             `json:"userId"` // the same
	Cursor json.RawMessage    `json:"cursor"`
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
	all, err := h.Verbs.Presence(r.Context(), api.PresenceNote{Session: id, Action: in.Action, User: cmp.Or(in.User, in.UserID), Cursor: in.Cursor})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, present{all})
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
	return httpapi.WriteJSON(w, http.StatusOK, present{all})
}

// appendPresence appends a frame for each change. A frame has no id, because the change
// is not in the log: a client that reconnects receives all users again.
func appendPresence(b []byte, changes []tapedeck.Event) []byte {
	for i := range changes {
		e := &changes[i]
		data, _ := json.Marshal(ephemeral{e.Type, e.Channel, e.Time.Format("2006-01-02T15:04:05.000Z"), e.Actor, e.Data}) // it was checked when it arrived
		b = sse.AppendFrame(b, "", "presence", data)
	}
	return b
}

// An ephemeral event is an envelope without an offset.
type ephemeral struct {
	Type      string          `json:"type"`
	Channel   string          `json:"channel"`
	Timestamp string          `json:"timestamp"`
	Actor     string          `json:"actor"`
	Data      json.RawMessage `json:"data"`
}
