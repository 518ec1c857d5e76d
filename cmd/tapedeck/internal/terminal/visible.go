package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden reports whether a character cannot be told from what stands around it:
// it changes the order of letters, it cannot be seen, or it looks like the space
// that it is not. The screen has the same set, in action.ts; testdata/visible.json
// is the table of both.
func hidden(r rune) bool {
	if r >= ' ' && r < 0x7f || r == '\n' || r == '\t' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}

// visible returns text in which nothing is hidden: a hidden character has its
// number. Line ends and tabs stay. It is for what people decide by; [clean] is for
// what they read.
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

// visibleLine returns text in which nothing is hidden, on one line.
func VisibleLine(s string) string {
	return strings.Join(strings.Fields(Visible(s)), " ")
}

// escapeHidden returns JSON of the same value in which no hidden character stands
// for itself: what an agent says could otherwise steer a terminal. Outside of
// strings JSON has no such character.
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
