package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

func newDiff(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A[@OFFSET] B[@OFFSET]",
		Short: "Compare two sessions turn by turn",
		Long: `Diff compares the conversations of two sessions: how many turns at the beginning
are the same, and how the other turns differ. It compares messages and tool calls;
ids and times do not count. For forks of one session it also shows which events
they share.

With @OFFSET a session is compared in its state before the event at that offset, for
example with itself before a rewind.`,
		Example: `  tapedeck diff ses_01J… ses_02K…
  tapedeck diff ses_01J…@120 ses_01J…`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("%s takes the ids of two sessions", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a, atA, err := sessionAt(args[0])
			if err != nil {
				return err
			}
			b, atB, err := sessionAt(args[1])
			if err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error {
				return e.diff(c.Context(), conn, a, b, atA, atB)
			})
		},
	}
}

// sessionAt reads a session id and the offset after its @, -1 for none. The id may
// contain an @, too.
func sessionAt(s string) (id string, at int64, err error) {
	id, at = s, -1
	if i := strings.LastIndexByte(s, '@'); i > 0 {
		if n, err := strconv.ParseUint(s[i+1:], 10, 62); err == nil {
			id, at = s[:i], int64(n)
		}
	}
	if err := tapedeck.CheckID("the session id", id); err != nil {
		return "", 0, &exitError{exitUsage, err}
	}
	return id, at, nil
}

func (e *env) diff(ctx context.Context, conn *connection, a, b string, atA, atB int64) error {
	d, err := conn.Diff(ctx, a, b, atA, atB)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(d)
	}
	return diffing{e.pen()}.print(&d)
}

// A diffing prints a diff.
type diffing struct{ terminal.Pen }

func (p diffing) print(d *view.Diff) error {
	var b strings.Builder
	p.side(&b, "a", terminal.Red, d.A)
	p.side(&b, "b", terminal.Green, d.B)
	b.WriteString(p.Paint(terminal.Dim, common(d)) + "\n")
	for i := range d.Turns {
		p.turn(&b, &d.Turns[i])
	}
	return p.Printf("%s", b.String())
}

func (p diffing) side(b *strings.Builder, name string, s terminal.Style, of view.DiffSession) {
	fmt.Fprintf(b, "%s  %s %s  %s\n", p.Paint(s, name), of.ID, p.Paint(terminal.Bold, terminal.Brief(of.Title, 60)),
		p.Paint(terminal.Dim, fmt.Sprintf("%s, at offset %d", terminal.Count(of.Turns, "turn"), of.At)))
}

func common(d *view.Diff) string {
	var s string
	switch {
	case d.Same:
		s = "the conversations are the same"
	case d.Common == 0:
		s = "the first turn differs"
	case d.Common == 1:
		s = "the first turn is the same"
	default:
		s = fmt.Sprintf("the first %d turns are the same", d.Common)
	}
	if d.Shared > 0 {
		s += fmt.Sprintf("; events before offset %d are shared", d.Shared)
	}
	return s
}

func (p diffing) turn(b *strings.Builder, t *view.DiffTurn) {
	head := fmt.Sprintf("turn %d", t.Turn)
	switch {
	case t.Same:
		fmt.Fprintf(b, "\n%s\n", p.Paint(terminal.Dim, head+" is the same"))
		return
	case t.A == nil:
		head += " only in b"
	case t.B == nil:
		head += " only in a"
	}
	fmt.Fprintf(b, "\n%s\n", p.Paint(terminal.Bold, head))
	for _, c := range t.Changes {
		p.change(b, t, &c)
	}
}

func (p diffing) change(b *strings.Builder, t *view.DiffTurn, c *view.DiffChange) {
	label := terminal.Clean(c.Name)
	if c.Kind == "tool" {
		label = "tool " + label
	}
	switch c.Op {
	case "removed":
		fmt.Fprintf(b, "  %s %s\n", p.Paint(terminal.Red, "- "+label), terminal.Brief(itemText(t.A, *c.A), max(20, p.Width-30)))
	case "added":
		fmt.Fprintf(b, "  %s %s\n", p.Paint(terminal.Green, "+ "+label), terminal.Brief(itemText(t.B, *c.B), max(20, p.Width-30)))
	default:
		fmt.Fprintf(b, "  %s %s\n", p.Paint(terminal.Yellow, "~ "+label), p.Paint(terminal.Dim, fmt.Sprintf("offset %d, %d", *c.A, *c.B)))
		p.lines(b, "", c.Text)
		p.lines(b, "arguments", c.Arguments)
		p.lines(b, "status", c.Status)
	}
}

// itemText returns the text of the item of a turn at an offset.
func itemText(s *view.DiffSide, offset int64) string {
	for _, list := range [...][]view.DiffItem{s.Messages, s.Tools} {
		for _, i := range list {
			if i.Offset == offset {
				return strings.TrimSpace(i.Arguments + " " + i.Text)
			}
		}
	}
	return ""
}

func (p diffing) lines(b *strings.Builder, title string, lines []view.DiffLine) {
	if len(lines) > 0 && title != "" {
		fmt.Fprintf(b, "    %s\n", p.Paint(terminal.Dim, title))
	}
	styles := map[string]terminal.Style{"-": terminal.Red, "+": terminal.Green, "@": terminal.Dim}
	for _, l := range lines {
		line := l.Op + " " + terminal.Clean(l.Text)
		if s, ok := styles[l.Op]; ok {
			line = p.Paint(s, line)
		}
		b.WriteString("      " + line + "\n")
	}
}
