package rest

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// answerer is how the engine takes answers to what agents ask.
type answerer interface {
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)
}

// An answerRequest is the body of POST /sessions/{id}/permissions/{pid}.
type answerRequest struct {
	Option string `json:"option"`
	Offset *int64 `json:"offset"`
}

// answer answers what an agent has asked.
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
	return writeJSON(w, http.StatusOK, done)
}
