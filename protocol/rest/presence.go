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
	all, err := h.Verbs.Presence(r.Context(), api.PresenceNote{Session: id, Action: in.Action, User: cmp.Or(in.User, in.UserID), Cursor: in.Cursor})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, present{all})
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
	return httpapi.WriteJSON(w, http.StatusOK, present{all})
}

// appendPresence appends a frame for each change. It has no id, for it is not in
// the log: a client that comes again is told anew who is there.
func appendPresence(b []byte, changes []tapedeck.Event) []byte {
	for i := range changes {
		e := &changes[i]
		data, _ := json.Marshal(ephemeral{e.Type, e.Channel, e.Time.Format("2006-01-02T15:04:05.000Z"), e.Actor, e.Data}) // all of it was checked when it came
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
