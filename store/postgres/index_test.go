package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestLongDocuments: a document beyond every limit of a tsvector is indexed, and found by
// the words that fit.
func TestLongDocuments(t *testing.T) {
	s := open(t, postgres.Options{URL: place(t)})
	create(t, s, "a")
	x, err := s.OpenIndex()
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Head(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var distinct strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&distinct, "word%d ", i)
	}
	var docs []search.Document
	for i, text := range []string{
		distinct.String(), strings.Repeat("common ", 50_000) + "rare", "short " + strings.Repeat("x", 5000) + " end", strings.Repeat("é", 3000), "",
	} {
		docs = append(docs, search.Document{Offset: int64(i), Kind: search.DocMessage, Text: text})
	}
	if err := x.Index(t.Context(), search.Batch{Session: "a", Gen: h.Gen, Seen: h.Head, Documents: docs}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{"word7": 0, `"word7 word8"`: 0, "rare": 1, "common": 1, "end": 2, `"short end"`: -1, strings.Repeat("x", 1000): 2, `"word30000 word30001"`: 0, `"word30000 word30002"`: -1, `"common rare"`: 1, `"rare common"`: -1} {
		found, err := x.Search(t.Context(), search.Query{Text: text, Limit: 10})
		switch {
		case err != nil:
			t.Errorf("%.20q: %v", text, err)
		case want < 0 && len(found.Hits) > 0 || want >= 0 && (len(found.Hits) != 1 || found.Hits[0].Offset != want):
			t.Errorf("%.20q: got %d hits", text, len(found.Hits))
		}
	}
}
