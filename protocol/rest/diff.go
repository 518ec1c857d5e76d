package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck/internal/httpapi"
)

var diffParameters = []string{"a", "b", "at_a", "at_b"}

// diff compares two conversations.
func (h *handler) diff(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, diffParameters...)
	a, b := q.ID("a"), q.ID("b")
	atA, atB := q.Offset("at_a", -1), q.Offset("at_b", -1)
	if a == "" || b == "" {
		q.Fail("the parameters a and b must name two sessions")
	}
	if q.Err != nil {
		return q.Err
	}
	d, err := h.Views.Diff(r.Context(), a, b, atA, atB)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, d)
}
