package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

func newSummary(e *env) *cobra.Command {
	return viewCommand(e, "summary", "Show how long a session took, what it used and what it changed",
		`Summary shows how long the runs of a session took, how many tokens they used, at
what cost, which tools they called and which files they changed. Reverted events
count, too, because they did happen. A fork counts its own events only.`,
		func(ctx context.Context, c *connection, session string, at int64) (view.Summary, error) {
			return c.Summary(ctx, session, at)
		}, printSummary)
}

func printSummary(p terminal.Pen, s view.Summary) (err error) {
	line := func(name, format string, args ...any) {
		if err == nil {
			err = p.Printf("%s  %s\n", p.Paint(terminal.Dim, fmt.Sprintf("%-9s", name)), terminal.Clean(fmt.Sprintf(format, args...)))
		}
	}
	line("status", "%s", s.Status)
	line("events", "%d%s", s.Events, orNothing(" and %d inherited", s.InheritedEvents))
	if s.Axis == view.AxisTime {
		line("length", "%s", (time.Duration(s.RecordingMS) * time.Millisecond).Round(100*time.Millisecond))
	} else {
		line("length", "%s", "the events have no times of their own")
	}
	line("runs took", "%s", (time.Duration(s.DurationMS) * time.Millisecond).Round(100*time.Millisecond))
	line("turns", "%d%s", s.Turns, orNothing(", model calls %d", s.ModelTurns))
	cost := ""
	if s.CostUSD != nil {
		cost = fmt.Sprintf(", $%.4f", *s.CostUSD)
	}
	line("tokens", "%d in, %d out%s", s.Tokens.Input, s.Tokens.Output, cost)
	for _, t := range s.Tools {
		line("tool", "%s %d×%s", terminal.Brief(t.Name, 40), t.Count, orNothing(", %d failed", t.Failed))
	}
	for _, f := range s.FilesModified {
		line("file", "%s", f)
	}
	if s.LinesAdded+s.LinesRemoved > 0 {
		line("lines", "+%d -%d", s.LinesAdded, s.LinesRemoved)
	}
	return err
}

// orNothing formats a number; 0 is the empty text.
func orNothing(format string, n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}
