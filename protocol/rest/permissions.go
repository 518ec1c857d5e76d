package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

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
	in, err := decode[api.Answer](h, w, r)
	if err != nil {
		return err
	}
	in.Session, in.Permission = id, permission
	done, err := h.Verbs.Answer(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
