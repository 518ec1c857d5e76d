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
	in, err := decode[api.Answer](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.Permission = id, permission
	done, err := h.Verbs.Answer(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, done)
}
