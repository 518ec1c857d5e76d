package rest

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
)

// Limits of one page of a search.
const (
	searchDefault = 20
	searchLimit   = 100
)

// search finds where something was said.
func (h *handler) search(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, "q", "session", "kind", "role", "status", "agent", "owner", "from", "to", "cursor", "limit")
	s := tapedeck.Search{
		Text: q.string("q"), Session: q.id("session"),
		Kind:   q.one("kind", "", tapedeck.DocMessage, tapedeck.DocTool, tapedeck.DocTitle),
		Role:   q.string("role"),
		Status: tapedeck.Status(q.one("status", "", known...)),
		Agent:  q.string("agent"), Owner: q.string("owner"),
		From: q.time("from"), To: q.time("to"),
		Cursor: q.string("cursor"), Limit: q.limit(searchDefault, searchLimit),
	}
	if q.err != nil {
		return q.err
	}
	if h.Search == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server keeps no search index")
	}
	found, err := h.Search.Search(r.Context(), s)
	if err != nil {
		return err
	}
	found.Hits = orEmpty(found.Hits)
	return writeJSON(w, http.StatusOK, found)
}
