package player

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// wideRunes are the characters that take two columns of a terminal: East Asian wide
// and full-width characters, and characters that are emoji by default.
var wideRunes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3},
		{0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1}, {0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26aa, 9},
		{0x26ab, 0x26bd, 18}, {0x26be, 0x26c4, 6}, {0x26c5, 0x26ce, 9}, {0x26d4, 0x26ea, 22}, {0x26f2, 0x26f3, 1},
		{0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8}, {0x270a, 0x270b, 1}, {0x2728, 0x274c, 36}, {0x274e, 0x2753, 5},
		{0x2754, 0x2755, 1}, {0x2757, 0x2795, 62}, {0x2796, 0x2797, 1}, {0x27b0, 0x27bf, 15}, {0x2b1b, 0x2b1c, 1},
		{0x2b50, 0x2b55, 5}, {0x2e80, 0x303e, 1}, {0x3041, 0x33ff, 1}, {0x3400, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1},
		{0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe10, 0xfe19, 1}, {0xfe30, 0xfe6f, 1},
		{0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1}, {0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1}, {0x1f200, 0x1f265, 1}, {0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f7e0, 0x1f7eb, 1},
		{0x1f900, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1}, {0x20000, 0x3fffd, 1},
	},
}

// runeWidth returns how many columns of a terminal r takes.
func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wideRunes, r):
		return 2
	}
	return 1
}

// textWidth returns how many columns s takes. It ignores styles.
func textWidth(s string) (n int) {
	for len(s) > 0 {
		if k := styleLen(s); k > 0 {
			s = s[k:]
			continue
		}
		r, k := utf8.DecodeRuneInString(s)
		n, s = n+runeWidth(r), s[k:]
	}
	return n
}

// styleLen returns the length of the style at the beginning of s, 0 if there is none.
// Text of a session has no styles, because of [terminal.Clean].
func styleLen(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	return strings.IndexByte(s, 'm') + 1
}

// A wrapper breaks text into rows of a width. At the end of a row it ends the style,
// and begins it again in the next row.
type wrapper struct {
	width int
	rows  []string
	row   strings.Builder
	col   int
	style string
}

// wrap returns text in rows of at most width columns.
func wrap(text string, width int) []string {
	w := wrapper{width: max(width, 2)} // a wide character must fit
	for len(text) > 0 {
		if n := styleLen(text); n > 0 {
			w.setStyle(text[:n])
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		w.writeRune(r)
		text = text[n:]
	}
	if w.col > 0 {
		w.endRow()
	}
	return w.rows
}

func (w *wrapper) setStyle(s string) {
	w.row.WriteString(s)
	if w.style = s; s == terminal.Reset {
		w.style = ""
	}
}

func (w *wrapper) writeRune(r rune) {
	switch r {
	case '\n':
		w.endRow()
		return
	case '\t':
		for w.writeRune(' '); w.col%8 != 0 && w.col < w.width; {
			w.writeRune(' ')
		}
		return
	}
	n := runeWidth(r)
	if w.col+n > w.width {
		w.endRow()
	}
	w.row.WriteRune(r)
	w.col += n
}

func (w *wrapper) endRow() {
	if w.style != "" {
		w.row.WriteString(terminal.Reset)
	}
	w.rows = append(w.rows, w.row.String())
	w.row.Reset()
	w.row.WriteString(w.style)
	w.col = 0
}

// lastRows returns the last n rows of text in a width. It reads the last n lines of
// the text only.
func lastRows(text string, width, n int) []string {
	begin := len(strings.TrimSuffix(text, "\n"))
	for range n {
		if begin = strings.LastIndexByte(text[:begin], '\n'); begin < 0 {
			break
		}
	}
	rows := wrap(text[begin+1:], width)
	return rows[max(0, len(rows)-n):]
}

// fit cuts s to at most width columns.
func fit(s string, width int) string {
	if textWidth(s) <= width {
		return s
	}
	return wrap(s, width)[0]
}
