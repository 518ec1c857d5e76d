package postgres

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tapedeck/tapedeck/search"
)

// The parser of PostgreSQL takes a path or an address as one word, and its dictionaries
// drop words and endings. A search has to find the same on every store, so the words are
// made here, by the rules of the index of SQLite: a word is a sequence of letters and
// digits, without case and accents. PostgreSQL keeps and finds them.

// A word is a part of a text.
type word struct {
	text       string // folded
	start, end int
}

// words returns the words of a text.
func words(text string) []word {
	var out []word
	start := -1
	for i, r := range text + " " {
		in := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r) && start >= 0 || unicode.Is(unicode.Co, r)
		if in && start < 0 {
			start = i
		}
		if !in && start >= 0 {
			out = append(out, word{fold(text[start:i]), start, i})
			start = -1
		}
	}
	return out
}

// fold removes case and accents.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(s))
}

// Limits of a tsvector: the bytes of a word, the positions of a word, the highest
// position, and the bytes of all.
const (
	maxWord      = 2046
	maxPositions = 256
	maxPosition  = 16383
	maxVector    = 900 << 10
)

// vector returns the words of a text with their positions, as the type tsvector reads
// them. Words beyond its limits are left out.
func vector(text string) string {
	positions := map[string][]int{}
	var order []string
	size := 0
	for i, w := range words(text) {
		known := positions[w.text]
		if w.text == "" || len(w.text) > maxWord || len(known) >= maxPositions {
			continue
		}
		if known == nil {
			if size += len(w.text) + 8; size > maxVector {
				break
			}
			order = append(order, w.text)
		}
		size += 2
		positions[w.text] = append(known, min(i+1, maxPosition))
	}
	var b strings.Builder
	for _, w := range order {
		b.WriteString(quoted(w))
		for i, p := range positions[w] {
			b.WriteByte(":,"[min(i, 1)])
			b.WriteString(strconv.Itoa(p))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// quoted returns a word as tsvector and tsquery read it. It has only letters and digits.
func quoted(w string) string { return "'" + w + "'" }

// tsQuery returns the terms of a search as the type tsquery reads them. ok is false if no
// word is left to look for.
func tsQuery(terms []search.Term) (query string, ok bool) {
	var parts []string
	for _, t := range terms {
		phrase := words(t.Words)
		if len(phrase) == 0 {
			continue
		}
		list := make([]string, len(phrase))
		for i, w := range phrase {
			list[i] = quoted(truncated(w.text))
		}
		if t.Prefix {
			list[len(list)-1] += ":*"
		}
		part := "(" + strings.Join(list, " <-> ") + ")"
		if t.Not {
			part = "!" + part
		} else {
			ok = true
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " & "), ok
}

// truncated returns what a query can hold of a word. The index has no longer ones.
func truncated(w string) string {
	if len(w) <= maxWord {
		return w
	}
	return strings.ToValidUTF8(w[:maxWord], "")
}

// around is how many words a snippet has before and after the match.
const around = 11

// snippet returns the part of a text around the first match of the terms, with the match
// between « and ».
func snippet(text string, terms []search.Term) string {
	all := words(text)
	for _, t := range terms {
		if t.Not {
			continue
		}
		if from, to := position(all, words(t.Words), t.Prefix); from >= 0 {
			first, last := max(0, from-around), min(len(all)-1, to-1+around)
			begin, end := all[first].start, all[last].end
			if first == 0 {
				begin = 0
			}
			if last == len(all)-1 {
				end = len(text)
			}
			s := text[begin:all[from].start] + "«" + text[all[from].start:all[to-1].end] + "»" + text[all[to-1].end:end]
			if begin > 0 {
				s = "…" + s
			}
			if end < len(text) {
				s += "…"
			}
			return s
		}
	}
	return ""
}

// position returns the range of a text in which words follow each other, -1 if there
// is none.
func position(all, want []word, prefix bool) (from, to int) {
	for i := 0; i+len(want) <= len(all) && len(want) > 0; i++ {
		ok := true
		for j, w := range want {
			have := all[i+j].text
			ok = ok && (have == w.text || prefix && j == len(want)-1 && strings.HasPrefix(have, w.text))
		}
		if ok {
			return i, i + len(want)
		}
	}
	return -1, -1
}
