package rest

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
)

// Limits of one page of a search.
const (
	searchDefault = 20
	searchLimit   = 100
)

// maxSaid is how many places are looked at to find the sessions of a list.
const maxSaid = 1000

// said adds to a filter the sessions in which its query was said.
func (h *handler) said(ctx context.Context, f *tapedeck.Filter) error {
	if f.Query == "" || h.Search == nil || !hasWords(f.Query) {
		return nil // the title may still contain it
	}
	s := search.Query{Text: f.Query, Status: f.Status, Agent: f.Agent, Owner: f.Owner, Limit: searchLimit}
	seen := map[string]bool{}
	for range maxSaid / searchLimit {
		found, err := h.Search.Search(ctx, s)
		if err != nil {
			return err
		}
		for i := range found.Hits {
			if id := found.Hits[i].Session; !seen[id] {
				seen[id] = true
				f.Said = append(f.Said, id)
			}
		}
		if s.Cursor = found.Next; s.Cursor == "" {
			break
		}
	}
	return nil
}

// hasWords reports whether there is something in a query to look for.
func hasWords(query string) bool {
	_, err := search.Parse(query)
	return err == nil
}

var searchParameters = []string{"q", "session", "kind", "role", "status", "agent", "owner", "from", "to", "cursor", "limit"}

// search finds where something was said.
func (h *handler) search(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, searchParameters...)
	s := search.Query{
		Text: q.string("q"), Session: q.id("session"),
		Kind:   q.one("kind", "", search.DocMessage, search.DocTool, search.DocTitle),
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
