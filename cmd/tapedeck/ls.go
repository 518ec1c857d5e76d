package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

func newList(e *env) *cobra.Command {
	var f tapedeck.Filter
	var all bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List sessions, newest first",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Limit < 1 || f.Limit > 1000 {
				return usageError("--limit takes a number from 1 to 1000")
			}
			if err := e.exists(); err != nil {
				return err
			}
			return e.with(c.Context(), func(conn *connection) error { return e.list(c.Context(), conn, f, all) })
		},
	}
	c.Flags().StringVar((*string)(&f.Status), "status", "", "only with this status: idle, pending, running, complete, failed, cancelled, interrupted")
	c.Flags().StringVar(&f.Agent, "agent", "", "only of this agent")
	c.Flags().StringVar(&f.Owner, "owner", "", "only of this owner")
	c.Flags().StringVarP(&f.Query, "query", "q", "", "only whose title or id contains this")
	c.Flags().IntVar(&f.Limit, "limit", 50, "at most this many")
	c.Flags().BoolVar(&all, "all", false, "all of them, however many")
	return c
}

func (e *env) list(ctx context.Context, c *connection, f tapedeck.Filter, all bool) error {
	p, n := e.pen(), 0
	for {
		sessions, next, err := c.Sessions(ctx, f)
		if err != nil {
			return err
		}
		for i := range sessions {
			if err := e.listLine(p, &sessions[i], n == 0); err != nil {
				return err
			}
			n++
		}
		if next == "" || !all {
			return e.listEnd(n, next)
		}
		f.Cursor = next
	}
}

func (e *env) listLine(p pen, s *tapedeck.Session, first bool) error {
	if e.json {
		return e.printJSON(s)
	}
	if first {
		if err := p.printf("%s\n", p.paint(dim, fmt.Sprintf("%-30s  %-11s  %8s  %8s  %s", "SESSION", "STATUS", "EVENTS", "AGE", "TITLE"))); err != nil {
			return err
		}
	}
	status := string(s.Status)
	if s.Closed {
		status = "closed"
	}
	return p.printf("%-30s  %s  %8d  %8s  %s\n", s.ID, p.paint(statusStyle(s.Status), fmt.Sprintf("%-11s", status)),
		s.Head, age(time.Since(s.Created)), brief(titleOf(*s), 60))
}

func (e *env) listEnd(n int, next string) error {
	if e.json {
		return nil
	}
	switch {
	case n == 0:
		fmt.Fprintln(e.stderr, "no sessions")
	case next != "":
		fmt.Fprintf(e.stderr, "these are the newest %d; --all lists all\n", n)
	}
	return nil
}

func statusStyle(s tapedeck.Status) style {
	switch s {
	case tapedeck.StatusRunning, tapedeck.StatusPending:
		return cyan
	case tapedeck.StatusComplete:
		return green
	case tapedeck.StatusFailed:
		return red
	case tapedeck.StatusCancelled, tapedeck.StatusInterrupted:
		return yellow
	}
	return dim
}

func titleOf(s tapedeck.Session) string {
	if s.Title == "" {
		return "(no title)"
	}
	return s.Title
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
