package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// listFlags are the flags of ls.
type listFlags struct {
	filter   tapedeck.Filter
	from, to string
	all      bool
	tree     bool
	density  bool
	sort     string
	reverse  bool
}

// listSorts are the values of --sort.
var listSorts = []string{"created", "activity", "title", "tokens", "cost", "duration", "failures"}

func newList(e *env) *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List sessions, newest first",
		Long: `Ls lists sessions, newest first. LENGTH is that of the recording: the time that the
conversation takes, without the time between its runs. It is - if the events have no
times of their own. --from and --to take a day (2026-01-31), a time
(2026-01-31T12:00:00Z) or an age (90m, 12h, 7d).`,
		Example: `  tapedeck ls --status failed --from 7d
  tapedeck ls --tree --density`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.all && c.Flags().Changed("limit") {
				return usageError("--all and --limit cannot be used together")
			}
			if err := f.check(time.Now()); err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error { return e.list(c.Context(), conn, f) })
		},
	}
	fl := c.Flags()
	fl.StringVar((*string)(&f.filter.Status), "status", "", "only sessions with this status: idle, pending, running, waiting, complete, failed, cancelled, interrupted; or closed, with any status")
	fl.StringVar(&f.filter.Agent, "agent", "", "only sessions of this agent")
	fl.StringVar(&f.filter.Owner, "owner", "", "only sessions of this owner")
	fl.StringVar(&f.filter.Parent, "parent", "", "only forks of this session")
	fl.StringVar(&f.from, "from", "", "only sessions created at this time or later")
	fl.StringVar(&f.to, "to", "", "only sessions created before this time")
	fl.StringVarP(&f.filter.Query, "query", "q", "", "only sessions whose title, id or text contains this")
	fl.StringVar(&f.sort, "sort", "created", "order: created, activity, title, tokens, cost, duration or failures; the highest first, but title from A")
	fl.BoolVar(&f.reverse, "reverse", false, "the other way round")
	fl.IntVar(&f.filter.Limit, "limit", 50, "list at most this many")
	fl.BoolVar(&f.all, "all", false, "list all sessions")
	fl.BoolVar(&f.tree, "tree", false, "show forks below their parents")
	fl.BoolVar(&f.density, "density", false, "show how the events of each session are spread over its time")
	return c
}

func (f *listFlags) check(now time.Time) (err error) {
	if f.filter.Limit < 1 || f.filter.Limit > 1000 {
		return usageError("--limit takes a number from 1 to 1000")
	}
	if !slices.Contains(listSorts, f.sort) {
		return usageError("--sort takes created, activity, title, tokens, cost, duration or failures, not %q", f.sort)
	}
	f.filter.Ascending = (f.sort == "title") != f.reverse
	if f.filter.Sort = f.sort; f.sort == "created" {
		f.filter.Sort = ""
	}
	if f.filter.From, err = parseTime(f.from, now); err != nil {
		return usageError("--from: %w", err)
	}
	if f.filter.To, err = parseTime(f.to, now); err != nil {
		return usageError("--to: %w", err)
	}
	return nil
}

func (e *env) list(ctx context.Context, c *connection, f listFlags) error {
	l := listing{env: e, pen: e.pen(), client: c, density: f.density}
	var kept []api.SessionRow // for the tree, which needs all sessions at once
	for {
		page, err := c.SessionsWithSummaries(ctx, f.filter)
		if err != nil {
			return err
		}
		if f.tree && !e.json {
			kept = append(kept, page.Sessions...)
		} else if err := l.lines(ctx, page.Sessions, nil); err != nil {
			return err
		}
		if page.Next == "" || !f.all {
			order, depth := tree(kept)
			if err := l.lines(ctx, order, depth); err != nil {
				return err
			}
			return e.listEnd(l.n, page.Next)
		}
		f.filter.Cursor = page.Next
	}
}

// A listing prints sessions.
type listing struct {
	*env
	pen     terminal.Pen
	client  *connection
	density bool
	n       int
}

func (l *listing) lines(ctx context.Context, sessions []api.SessionRow, depth []int) error {
	for i := range sessions {
		d := 0
		if depth != nil {
			d = depth[i]
		}
		if err := l.line(ctx, &sessions[i], d); err != nil {
			return err
		}
		l.n++
	}
	return nil
}

func (l *listing) line(ctx context.Context, s *api.SessionRow, depth int) error {
	if l.json {
		return l.printJSON(s)
	}
	spark, head := "", ""
	if l.density {
		spark, head = l.spark(ctx, s.ID)+"  ", fmt.Sprintf("%-*s  ", sparkWidth, "DENSITY")
	}
	p := l.pen
	if l.n == 0 {
		if err := p.Printf("%s\n", p.Paint(terminal.Dim, fmt.Sprintf("%-30s  %-*s  %8s  %7s  %5s  %s%s", "SESSION", statusWidth, "STATUS", "EVENTS", "LENGTH", "AGE", head, "TITLE"))); err != nil {
			return err
		}
	}
	status := string(s.Status)
	if s.Closed {
		status += ", closed"
	}
	return p.Printf("%-30s  %s  %8d  %7s  %5s  %s%s\n", strings.Repeat("  ", depth)+s.ID, p.Paint(statusStyle(s.Status), fmt.Sprintf("%-*s", statusWidth, status)),
		s.Head, lengthOf(s.Summary), age(time.Since(s.Created)), spark, terminal.Brief(titleOf(s.Session), 60))
}

// lengthOf formats the length of a recording. It is "-" if the events have no times of
// their own.
func lengthOf(s *view.SessionSummary) string {
	switch {
	case s == nil || s.Axis == view.AxisEvents && s.RecordingMS == 0:
		return "-"
	case s.RecordingMS < 1000:
		return fmt.Sprintf("%dms", s.RecordingMS)
	case s.RecordingMS < 3600_000:
		return fmt.Sprintf("%d:%02d", s.RecordingMS/60_000, s.RecordingMS/1000%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s.RecordingMS/3600_000, s.RecordingMS/60_000%60, s.RecordingMS/1000%60)
}

// statusWidth is the width of the column STATUS: that of the longest status.
const statusWidth = len("interrupted, closed")

func (e *env) listEnd(n int, next string) error {
	if e.json {
		return nil
	}
	switch {
	case n == 0:
		fmt.Fprintln(e.stderr, "no sessions")
	case next != "":
		fmt.Fprintf(e.stderr, "showing the newest %d; --all lists all\n", n)
	}
	return nil
}

func statusStyle(s tapedeck.Status) terminal.Style {
	switch s {
	case tapedeck.StatusRunning, tapedeck.StatusPending:
		return terminal.Cyan
	case tapedeck.StatusComplete:
		return terminal.Green
	case tapedeck.StatusFailed:
		return terminal.Red
	case tapedeck.StatusWaiting, tapedeck.StatusCancelled, tapedeck.StatusInterrupted:
		return terminal.Yellow
	}
	return terminal.Dim
}

func titleOf(s tapedeck.Session) string {
	if s.Title == "" {
		return "(no title)"
	}
	return s.Title
}
