package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// An answerRequest is the body of POST /sessions/{id}/permissions/{pid}.
type answerRequest struct {
	Option string `json:"option"`
	Offset *int64 `json:"offset"`
}

// answer answers a question of an agent.
func (h *handler) answer(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	permission := r.PathValue("pid")
	if err := tapedeck.CheckID("the permission", permission); err != nil {
		return err
	}
	in, err := decode[answerRequest](h, w, r)
	if err != nil {
		return err
	}
	done, err := h.Verbs.Answer(r.Context(), api.Answer{Session: id, Permission: permission, Option: in.Option, Offset: in.Offset})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
