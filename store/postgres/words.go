package postgres

import (
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck/search"
)

// The parser of PostgreSQL takes a path or an address as one word, and its dictionaries
// drop words and endings. A search has to find the same on every store, so PostgreSQL only
// keeps and finds the words of [search.Words].

// Limits of a tsvector: the positions of a word, the highest position, and the bytes of
// all.
const (
	maxPositions = 256
	maxPosition  = 16383
	maxVector    = 900 << 10
)

// An entry is a word of a vector.
type entry struct {
	word      string
	positions []int
	more      bool // it is at further places, for which there is no room
}

// entries returns the words of a text with their positions. Words beyond the limit of all
// are left out.
func entries(text string) []*entry {
	var out []*entry
	known := map[string]*entry{}
	size := 0
	for i, w := range search.Words(text) {
		e := known[w.Text]
		if e == nil {
			if size += len(w.Text) + 8; size > maxVector {
				break
			}
			e = &entry{word: w.Text}
			known[w.Text], out = e, append(out, e)
		}
		if i >= maxPosition || len(e.positions) == maxPositions {
			e.more = true
			continue
		}
		size += 2
		e.positions = append(e.positions, i+1)
	}
	return out
}

// vector returns the words of a text as the type tsvector reads them. A word that is at
// further places has the label A at its last one.
func vector(text string) string {
	var b strings.Builder
	for _, e := range entries(text) {
		if len(e.positions) == 0 {
			e.positions = []int{maxPosition}
		}
		b.WriteString(quoted(e.word))
		for i, p := range e.positions {
			b.WriteByte(":,"[min(i, 1)])
			b.WriteString(strconv.Itoa(p))
		}
		if e.more {
			b.WriteByte('A')
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// quoted returns a word as tsvector and tsquery read it.
func quoted(w string) string { return "'" + w + "'" }

// tsQuery returns the terms of a search as the type tsquery reads them. It also finds
// texts that have the words of a phrase, if not all their places are known. A reader of
// their texts compares with [search.Match].
func tsQuery(terms []search.Term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		words, further := make([]string, len(t.Words)), make([]string, len(t.Words))
		for j, w := range t.Words {
			prefix := t.Prefix && j == len(t.Words)-1
			words[j], further[j] = quoted(w), quoted(w)+":A"
			if prefix {
				words[j], further[j] = words[j]+":*", further[j]+"*"
			}
		}
		parts[i] = "(" + strings.Join(words, " <-> ") + ")"
		switch {
		case t.Not:
			parts[i] = "!" + parts[i]
		case len(words) > 1:
			parts[i] = "(" + parts[i] + " | " + strings.Join(words, " & ") + " & (" + strings.Join(further, " | ") + "))"
		}
	}
	return strings.Join(parts, " & ")
}
