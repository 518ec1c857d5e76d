package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// erase removes the payloads of events for good.
func (h *handler) erase(w http.ResponseWriter, r *http.Request) error {
	id, err := target(r)
	if err != nil {
		return err
	}
	in, err := decode[api.Erase](h, w, r)
	if err != nil {
		return err
	}
	in.Session = id
	done, err := h.Verbs.Erase(r.Context(), in)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, done)
}
