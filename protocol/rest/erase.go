package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// An eraseRequest is the body of POST /sessions/{id}/erase.
type eraseRequest struct {
	Events []tapedeck.OffsetRange `json:"events"`
	All    bool                   `json:"all"`
	Reason string                 `json:"reason"`
}

// erase removes the payloads of events for good.
func (h *handler) erase(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[eraseRequest](h, w, r)
	if err != nil {
		return err
	}
	done, err := h.Verbs.Erase(r.Context(), api.Erase{Session: id, Events: in.Events, All: in.All, Reason: in.Reason})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
