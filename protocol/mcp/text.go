package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark begins each line of content in the text of an answer. No line of content can look
// like a line of ours.
const mark = "| "

// cutText cuts a text to a number of bytes, at the end of a character.
func cutText(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}

// quote writes content to b, with the mark before each line.
func quote(b *strings.Builder, s string) {
	for line := range strings.SplitSeq(strings.TrimRight(clean(s), "\n"), "\n") {
		b.WriteString(mark + line + "\n")
	}
}

// brief returns content as one short line in quotes.
func brief(s string) string {
	s, cut := cutText(strings.Join(strings.Fields(clean(s)), " "), 100)
	if cut {
		s += "…"
	}
	return fmt.Sprintf("%q", s)
}

// clean replaces characters that people do not see: those that control a terminal, change
// the direction of text, or hide text in tags. Line ends and tabs stay, and the joiners that
// scripts and emoji need.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
			return r
		case r == '\u2028', r == '\u2029', r == '\u0085': // some programs end a line here
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return utf8.RuneError
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}
