package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/search"
)

func newSearch(e *env) *cobra.Command {
	var s search.Query
	var from, to string
	c := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find text in sessions",
		Long: `Search finds text in messages, thinking, tool calls, their results and titles. The
best matches come first. A match has all words of the query; "words in quotes"
follow each other; word* also matches longer words; -word excludes a word. Put --
before a query that begins with -.

--from and --to take a day (2026-01-31), a time (2026-01-31T12:00:00Z) or an age
(90m, 12h, 7d).`,
		Example: `  tapedeck search 'round the total'
  tapedeck search '"permission denied"' --kind tool --from 7d`,
		Args: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return usageError("%s takes a query; see: %s --help", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			if s.Limit < 1 || s.Limit > 100 {
				return usageError("--limit takes a number from 1 to 100")
			}
			s.Text = strings.Join(args, " ")
			if s.From, err = parseTime(from, time.Now()); err != nil {
				return usageError("--from: %w", err)
			}
			if s.To, err = parseTime(to, time.Now()); err != nil {
				return usageError("--to: %w", err)
			}
			return e.reading(c.Context(), func(conn *connection) error { return e.search(c.Context(), conn, s) })
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usageError("%s; see: %s --help; put -- before a query that begins with -, as in: tapedeck search -- '-other word'", err, c.CommandPath())
	})
	fl := c.Flags()
	fl.StringVar(&s.Session, "session", "", "only in this session")
	fl.StringVar(&s.Kind, "kind", "", "only text of this kind: message, tool or title")
	fl.StringVar(&s.Role, "role", "", "only text of this role, such as user, assistant or tool")
	fl.StringVar((*string)(&s.Status), "status", "", "only in sessions with this status")
	fl.StringVar(&s.Agent, "agent", "", "only in sessions of this agent")
	fl.StringVar(&s.Owner, "owner", "", "only in sessions of this owner")
	fl.StringVar(&from, "from", "", "only text from this time or later")
	fl.StringVar(&to, "to", "", "only text from before this time")
	fl.IntVar(&s.Limit, "limit", 20, "print at most this many")
	return c
}

func (e *env) search(ctx context.Context, c *connection, s search.Query) error {
	if s.Session != "" { // otherwise an unknown session would look like one without matches
		if _, err := c.Session(ctx, s.Session); err != nil {
			return err
		}
	}
	found, err := c.Search(ctx, s)
	if err != nil {
		return err
	}
	for i := range found.Hits {
		if err := e.printHit(&found.Hits[i]); err != nil {
			return err
		}
	}
	switch {
	case len(found.Hits) == 0:
		fmt.Fprintln(e.stderr, "nothing found")
	case found.Next != "":
		fmt.Fprintf(e.stderr, "showing the best %d; --limit shows more\n", len(found.Hits))
	}
	if found.Behind > 0 {
		fmt.Fprintf(e.stderr, "the newest events of %s are not in the search index yet\n", terminal.Count(found.Behind, "session"))
	}
	return nil
}

func (e *env) printHit(h *search.Hit) error {
	if e.json {
		return e.printJSON(h)
	}
	p := e.pen()
	role := h.Role
	if role == "" {
		role = h.Kind
	}
	snippet := terminal.Brief(h.Snippet, max(20, p.Width-56))
	if p.Color {
		snippet = strings.NewReplacer("«", terminal.Bold.Start(), "»", terminal.Reset).Replace(snippet)
	}
	if h.Rewound {
		snippet += " " + p.Paint(terminal.Dim, "(reverted)")
	}
	return p.Printf("%-30s  %7d  %-9s  %s\n", h.Session, h.Offset, terminal.Brief(role, 9), snippet)
}
