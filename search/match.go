package search

import (
	"cmp"
	"slices"
	"strings"
)

// phrase returns the words that a text must have one after the other to have this part
// of it, and whether the last of them may be only the beginning of a word.
func phrase(part string, prefix bool) ([]string, bool) {
	list := Words(part)
	if n := len(list); n > 0 && endsUnspaced(part, list[n-1]) {
		// The text may go on after the last character of the part.
		if n > 1 && list[n-2].End == list[n-1].End {
			list, prefix = list[:n-1], false
		} else {
			prefix = true
		}
	}
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = w.Text
	}
	return out, prefix
}

// endsUnspaced reports whether w, the last word of a part, is a character of a script
// without spaces.
func endsUnspaced(part string, w Word) bool {
	for _, r := range part[w.Start:] {
		return unspaced(r)
	}
	return false
}

// Match returns the part of a text around its first match, with the matches between « and
// ». ok is false if the text does not match the terms.
func Match(text string, terms []Term) (snippet string, ok bool) {
	list := Words(text)
	for _, t := range terms {
		if (t.first(list, 0) >= 0) == t.Not {
			return "", false
		}
	}
	return snippetOf(text, list, terms), true
}

// Snippet is [Match] for a text of which an index knows that it matches.
func Snippet(text string, terms []Term) string { return snippetOf(text, Words(text), terms) }

func snippetOf(text string, list []Word, terms []Term) string {
	for _, t := range terms {
		if i := t.first(list, 0); i >= 0 && !t.Not {
			from, to := around(list, i, i+len(t.Words))
			return quote(text, list, from, to, terms)
		}
	}
	return ""
}

// first returns the first place of the term in the words of a text from a place on, -1 if
// there is none.
func (t Term) first(list []Word, from int) int {
	last := len(t.Words) - 1
	for i := from; i+last < len(list) && last >= 0; i++ {
		ok := true
		for j, want := range t.Words {
			have := list[i+j].Text
			ok = ok && (have == want || t.Prefix && j == last && strings.HasPrefix(have, want))
		}
		if ok {
			return i
		}
	}
	return -1
}

// The most that a snippet has on each side of its first match: words, of which the
// characters of texts without spaces count for half, and bytes.
const (
	maxHalves = 22
	maxSide   = 400
)

// around returns the words of a snippet: some before and after those of a match.
func around(list []Word, from, to int) (begin, end int) {
	begin, end = from, to
	for n := 0; begin > 0 && n < maxHalves && list[from].Start-list[begin-1].Start < maxSide; begin-- {
		n += halves(list, begin-1)
	}
	for n := 0; end < len(list) && n < maxHalves && list[end].End-list[to-1].End < maxSide; end++ {
		n += halves(list, end)
	}
	return begin, end
}

func halves(list []Word, i int) int {
	if overlaps(list, i) {
		return 1
	}
	return 2
}

// overlaps reports whether a word shares a character with the next one.
func overlaps(list []Word, i int) bool { return i+1 < len(list) && list[i+1].Start < list[i].End }

// quote returns the text of the words from one place to another, with the matches of the
// terms marked.
func quote(text string, list []Word, from, to int, terms []Term) string {
	begin, end := list[from].Start, list[to-1].End
	if from == 0 && begin < maxSide {
		begin = 0
	}
	if to == len(list) && len(text)-end < maxSide {
		end = len(text)
	}
	var b strings.Builder
	if begin > 0 {
		b.WriteString("…")
	}
	at := begin
	for _, m := range matches(list[from:to], terms) {
		b.WriteString(text[at:m.Start] + "«" + text[m.Start:m.End] + "»")
		at = m.End
	}
	b.WriteString(text[at:end])
	if end < len(text) {
		b.WriteString("…")
	}
	return b.String()
}

// matches returns the places of the terms among the words, in order and without overlaps.
func matches(list []Word, terms []Term) []Word {
	var out []Word
	for _, t := range terms {
		if t.Not {
			continue
		}
		for i := t.first(list, 0); i >= 0; i = t.first(list, i+len(t.Words)) {
			last := i + len(t.Words) - 1
			m := Word{Start: list[i].Start, End: list[last].End}
			if t.Prefix && overlaps(list, last) {
				m.End = list[last+1].Start // only the first of the two characters
			}
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Word) int { return cmp.Compare(a.Start, b.Start) })
	joined := out[:0]
	for _, m := range out {
		if n := len(joined); n > 0 && m.Start < joined[n-1].End {
			joined[n-1].End = max(joined[n-1].End, m.End)
		} else {
			joined = append(joined, m)
		}
	}
	return joined
}
