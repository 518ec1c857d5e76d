package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden reports whether users cannot see a character for what it is: it changes the
// order of letters, is invisible, or looks like a space. The screen has the same set
// in action.ts. The tests of both use testdata/visible.json.
func hidden(r rune) bool {
	if r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}

// Visible returns text in which each hidden character is replaced by its number. Line
// ends and tabs stay. It is for text on which users base a decision; [Clean] is for
// text that they only read.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// VisibleLine is like [Visible], but returns one line.
func VisibleLine(s string) string {
	return strings.Join(strings.Fields(Visible(s)), " ")
}

// EscapeHidden returns JSON of the same value in which hidden characters are escaped;
// otherwise text from an agent could control a terminal. Outside of strings, JSON has
// no such characters.
func EscapeHidden(b []byte) []byte {
	raw := func(r rune) bool { return r >= 0x7f && hidden(r) }
	if !bytes.ContainsFunc(b, raw) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case !raw(r):
			out = append(out, b[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}
