package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck/api"
)

// erase removes payloads for good.
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
	return writeJSON(w, http.StatusOK, done)
}
