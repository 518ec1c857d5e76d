// Package terminal prints text in a terminal: in colour or without, cut to a
// width, and so that no text of a session can control the terminal or hide a
// character.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Style is the parameter of an ANSI escape sequence for text.
type Style string

// The styles that the program uses.
const (
	Dim    Style = "2"
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Cyan   Style = "36"
)

// Reset is the escape sequence that ends a style.
const Reset = "\x1b[0m"

// Start returns the escape sequence that begins the style.
func (s Style) Start() string { return "\x1b[" + string(s) + "m" }

// A Pen writes text, in colour or plain.
type Pen struct {
	W     io.Writer
	Color bool
	Width int // columns of the terminal
}

// Paint gives text a style. Each line begins and ends the style itself, so that
// it can be shown without the lines before it.
func (p Pen) Paint(s Style, text string) string {
	if !p.Color || text == "" {
		return text
	}
	return s.Start() + strings.ReplaceAll(text, "\n", Reset+"\n"+s.Start()) + Reset
}

// Printf writes formatted text.
func (p Pen) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.W, format, args...)
	return err
}

// Clean makes text of a session harmless for a terminal: text from an agent or a
// web page could contain escape sequences that move the cursor, set the title or
// answer for the user. Line ends and tabs stay.
func Clean(s string) string {
	bad := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r))
	}
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Brief returns clean text on one line of at most n characters.
func Brief(s string, n int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Count returns a number and a noun, in the plural unless n is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
