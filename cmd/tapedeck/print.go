package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// printJSON prints v on one line.
func (e *env) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := e.stdout.Write(terminal.EscapeHidden(b.Bytes()))
	return err
}

// printRecord prints the JSON of an event on one line.
func (e *env) printRecord(data []byte) error {
	line := terminal.EscapeHidden(data)
	_, err := e.stdout.Write(append(line[:len(line):len(line)], '\n'))
	return err
}

// pen returns a pen for the standard output. If that is not a terminal, lines may be
// long.
func (e *env) pen() terminal.Pen {
	p := terminal.Pen{W: e.stdout, Color: e.color(e.stdout), Width: 160}
	if f, ok := e.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 40 {
			p.Width = w
		}
	}
	return p
}

// eventLine describes an event on one line.
func eventLine(p terminal.Pen, e *tapedeck.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s", p.Paint(terminal.Dim, fmt.Sprintf("%7d", e.Offset)),
		p.Paint(terminal.Dim, e.Time.Local().Format("15:04:05.000")), p.Paint(typeStyle(e), fmt.Sprintf("%-24s", e.Type)))
	if e.Thread != "" {
		b.WriteString("  " + p.Paint(terminal.Blue, e.Thread))
	}
	if d := dataBrief(e); d != "" {
		b.WriteString("  " + terminal.Brief(d, max(20, p.Width-52-len(e.Thread))))
	}
	return b.String()
}

func typeStyle(e *tapedeck.Event) terminal.Style {
	switch {
	case e.Type == "RUN_ERROR":
		return terminal.Red
	case e.Channel == tapedeck.ChannelToolCalls:
		return terminal.Yellow
	case e.Channel == tapedeck.ChannelChunks:
		return terminal.Cyan
	case e.Channel == tapedeck.ChannelSession:
		return terminal.Bold
	}
	return terminal.Green
}

// dataBrief returns the most informative part of an event's data.
func dataBrief(e *tapedeck.Event) string {
	var d struct {
		Delta, Message, Content, Title, StepName json.RawMessage
		ToolCallName                             string
		Outcome                                  struct{ Type string }
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return terminal.Brief(string(e.Data), 80)
	}
	switch {
	case d.Delta != nil:
		return quoted(d.Delta)
	case d.ToolCallName != "":
		return terminal.Brief(d.ToolCallName, 80)
	case d.Outcome.Type != "":
		return d.Outcome.Type
	}
	for _, raw := range [...]json.RawMessage{d.Message, d.Content, d.Title, d.StepName} {
		if raw != nil {
			return quoted(raw)
		}
	}
	return terminal.Brief(string(e.Data), 80)
}

// quoted returns a string in quotes with visible line ends, and another value as JSON.
func quoted(raw json.RawMessage) string {
	var m struct{ Content json.RawMessage }
	if bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &m) == nil && m.Content != nil {
		raw = m.Content
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return terminal.Brief(string(raw), 80)
	}
	s = strings.ReplaceAll(terminal.Clean(s), "\n", "\\n")
	if utf8.RuneCountInString(s) > 80 {
		s = string([]rune(s)[:79]) + "…"
	}
	return "“" + s + "”"
}

// printDone prints v with --json, otherwise a sentence.
func (e *env) printDone(v any, format string, args ...any) error {
	if e.json {
		return e.printJSON(v)
	}
	_, err := fmt.Fprintf(e.stdout, format+"\n", args...)
	return err
}
