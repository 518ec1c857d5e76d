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
		for i, part := range strings.Split(vector(text), "'") {
			if i%2 == 0 && strings.Trim(part, ":,0123456789A ") != "" || i%2 == 1 && strings.ContainsAny(part, "\\ \x00:&|!<>()*") {
				t.Errorf("%q has the vector %q", text, vector(text))
			}
		}
		terms, err := search.Parse(query)
		if err != nil {
			return
		}
		for i, part := range strings.Split(tsQuery(terms), "'") {
			if i%2 == 0 && strings.Trim(part, ":A*!()&|<-> ") != "" || i%2 == 1 && strings.ContainsAny(part, "\\ \x00:&|!<>()*") {
				t.Errorf("%q becomes %q", query, tsQuery(terms))
			}
		}
	})
}
