package postgres

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/search"
)

func FuzzText(f *testing.F) {
	f.Add("a\x00b\x1a00\xff é")
	f.Add("\x1a")
	f.Fuzz(func(t *testing.T, s string) {
		column := stored(s)
		if strings.ContainsRune(column, 0) || strings.ToValidUTF8(column, "") != column {
			t.Errorf("%q is stored as %q", s, column)
		}
		if got := original(column); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
	})
}

// FuzzWords: whatever a text and a search have, the index and the query have only words
// between quotes, so that nothing in them has a meaning for PostgreSQL.
func FuzzWords(f *testing.F) {
	f.Add(`it's a "quick" \ fox:1`, `quick* -"lazy dog"`)
	f.Add("'; DROP TABLE docs --", "a & b | !c <-> d:*")
	f.Fuzz(func(t *testing.T, text, query string) {
		for _, w := range words(text) {
			if strings.ContainsAny(w.text, "'\\ \x00:&|!<>()*") {
				t.Errorf("%q has the word %q", text, w.text)
			}
			if w.start >= w.end || w.end > len(text) {
				t.Errorf("%q has a word from %d to %d", text, w.start, w.end)
			}
		}
		terms, err := search.Parse(query)
		if err != nil {
			return
		}
		if q, ok := tsQuery(terms); ok && strings.Count(q, "'")%2 != 0 {
			t.Errorf("%q becomes %q", query, q)
		}
		snippet(text, terms)
	})
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{"Über": "uber", "NAÏVE": "naive", "İstanbul": "istanbul", "Åé": "ae", "naïve": "naive", "東京": "東京", "x2": "x2"} {
		all := words(text)
		if len(all) != 1 || all[0].text != want {
			t.Errorf("%q: got %+v", text, all)
		}
	}
}
