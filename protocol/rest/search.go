package rest

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/search"
)

// Limits of one page of a search.
const (
	searchDefault = 20
	searchLimit   = 100
)

// maxListHits is how many hits a list uses to find its sessions.
const maxListHits = 1000

// addMatches adds to a filter the sessions whose conversation has its query.
func (h *handler) addMatches(ctx context.Context, f *tapedeck.Filter) error {
	if f.Query == "" || h.Search == nil || !hasWords(f.Query) {
		return nil // the title may still match
	}
	s := search.Query{Text: f.Query, Status: f.Status, Agent: f.Agent, Owner: f.Owner, Limit: searchLimit}
	seen := map[string]bool{}
	for range maxListHits / searchLimit {
		found, err := h.Search.Search(ctx, s)
		if err != nil {
			return err
		}
		for i := range found.Hits {
			if id := found.Hits[i].Session; !seen[id] {
				seen[id] = true
				f.MatchIDs = append(f.MatchIDs, id)
			}
		}
		if s.Cursor = found.Next; s.Cursor == "" {
			break
		}
	}
	return nil
}

// hasWords reports whether a query has a word to look for.
func hasWords(query string) bool {
	_, err := search.Parse(query)
	return err == nil
}

var searchParameters = []string{"q", "session", "kind", "role", "status", "agent", "owner", "from", "to", "cursor", "limit"}

// search finds text in the conversations.
func (h *handler) search(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, searchParameters...)
	s := search.Query{
		Text: q.String("q"), Session: q.ID("session"),
		Kind:   q.OneOf("kind", "", search.DocMessage, search.DocTool, search.DocTitle),
		Role:   q.Filter("role"),
		Status: tapedeck.Status(q.OneOf("status", "", statuses...)),
		Agent:  q.Filter("agent"), Owner: q.Filter("owner"),
		From: q.Time("from"), To: q.Time("to"),
		Cursor: q.String("cursor"), Limit: q.Limit(searchDefault, searchLimit),
	}
	if q.Err != nil {
		return q.Err
	}
	if h.Search == nil {
		return tapedeck.Errorf(tapedeck.Unsupported, "this server has no search index")
	}
	found, err := h.Search.Search(r.Context(), s)
	if err != nil {
		return err
	}
	found.Hits = httpapi.OrEmpty(found.Hits)
	return httpapi.WriteJSON(w, http.StatusOK, found)
}
