package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
)

// printJSON prints v on one line.
func (e *env) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := e.stdout.Write(escapeHidden(b.Bytes()))
	return err
}

// printRecord prints the JSON of an event on one line.
func (e *env) printRecord(data []byte) error {
	line := escapeHidden(data)
	_, err := e.stdout.Write(append(line[:len(line):len(line)], '\n'))
	return err
}

// A style is the inside of an ANSI escape sequence.
type style string

const (
	dim    style = "2"
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "34"
	cyan   style = "36"
)

// A pen writes text in colour, or plainly.
type pen struct {
	w     io.Writer
	color bool
	width int // of the terminal in characters; a wide one if it is none
}

func (e *env) pen() pen {
	p := pen{e.stdout, e.color(e.stdout), 160}
	if f, ok := e.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 40 {
			p.width = w
		}
	}
	return p
}

// paint gives text a style, each line its own, so that a line can be shown
// without those before it.
func (p pen) paint(s style, text string) string {
	if !p.color || text == "" {
		return text
	}
	begin := "\x1b[" + string(s) + "m"
	return begin + strings.ReplaceAll(text, "\n", styleNone+"\n"+begin) + styleNone
}

func (p pen) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.w, format, args...)
	return err
}

// clean makes text of a session harmless for a terminal: what an agent or a web
// page said could hold escape sequences that move the cursor, set the title or
// answer for the user. Line ends and tabs stay.
func clean(s string) string {
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

// count returns a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// brief returns s on one line of at most n characters.
func brief(s string, n int) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// eventLine describes an event on one line.
func (p pen) eventLine(e *tapedeck.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s", p.paint(dim, fmt.Sprintf("%7d", e.Offset)),
		p.paint(dim, e.Time.Local().Format("15:04:05.000")), p.paint(typeStyle(e), fmt.Sprintf("%-24s", e.Type)))
	if e.Thread != "" {
		b.WriteString("  " + p.paint(blue, e.Thread))
	}
	if d := dataBrief(e); d != "" {
		b.WriteString("  " + brief(d, max(20, p.width-52-len(e.Thread))))
	}
	return b.String()
}

func typeStyle(e *tapedeck.Event) style {
	switch {
	case e.Type == "RUN_ERROR":
		return red
	case e.Channel == tapedeck.ChannelToolCalls:
		return yellow
	case e.Channel == tapedeck.ChannelChunks:
		return cyan
	case e.Channel == tapedeck.ChannelSession:
		return bold
	}
	return green
}

// dataBrief returns the part of an event's data that tells most.
func dataBrief(e *tapedeck.Event) string {
	var d struct {
		Delta, Message, Content, Title, StepName json.RawMessage
		ToolCallName                             string
		Outcome                                  struct{ Type string }
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return brief(string(e.Data), 80)
	}
	switch {
	case d.Delta != nil:
		return quoted(d.Delta)
	case d.ToolCallName != "":
		return brief(d.ToolCallName, 80)
	case d.Outcome.Type != "":
		return d.Outcome.Type
	}
	for _, raw := range [...]json.RawMessage{d.Message, d.Content, d.Title, d.StepName} {
		if raw != nil {
			return quoted(raw)
		}
	}
	return brief(string(e.Data), 80)
}

// quoted shows a string with its line ends visible, and anything else as JSON.
func quoted(raw json.RawMessage) string {
	var m struct{ Content json.RawMessage }
	if bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &m) == nil && m.Content != nil {
		raw = m.Content
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return brief(string(raw), 80)
	}
	s = strings.ReplaceAll(clean(s), "\n", "\\n")
	if utf8.RuneCountInString(s) > 80 {
		s = string([]rune(s)[:79]) + "…"
	}
	return "“" + s + "”"
}
