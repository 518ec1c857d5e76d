package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
)

// importSessions makes sessions of recorded ones. The body is passed on as it
// comes; what it is, the format says.
func (h *handler) importSessions(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, "format", "title", "owner")
	in := tapedeck.ImportRequest{Format: q.string("format"), Title: q.string("title"), Owner: q.string("owner")}
	if q.err != nil {
		return q.err
	}
	switch mediaType(r) {
	case "", "application/x-www-form-urlencoded", "multipart/form-data": // what curl sends unless told
		return unsupported(r, "application/octet-stream, application/json or application/x-ndjson")
	}
	out, err := h.Verbs.Import(r.Context(), in, http.MaxBytesReader(w, r.Body, h.MaxImport))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, out)
}
