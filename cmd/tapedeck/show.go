package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
)

func newShow(e *env) *cobra.Command {
	var at int64
	var thread string
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print the conversation of a session",
		Long: `Show prints a session as a conversation: messages, thinking, tool calls, plans
and how its runs ended. With --json it prints the snapshot that the server
folds: messages, tool calls, runs and state, each with offset and invocation.`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if err := e.exists(); err != nil {
				return err
			}
			return e.with(c.Context(), func(conn *connection) error {
				if e.json {
					return e.showSnapshot(c.Context(), conn, args[0], at, thread)
				}
				return e.showTranscript(c.Context(), conn, args[0], at, thread)
			})
		},
	}
	c.Flags().Int64Var(&at, "at", -1, "as it was before the event at this offset (default: as it is)")
	c.Flags().StringVar(&thread, "thread", "", "only this thread")
	return c
}

func (e *env) showSnapshot(ctx context.Context, c *connection, session string, at int64, thread string) error {
	raw, err := c.Snapshot(ctx, session, at, thread)
	if err != nil {
		return err
	}
	return e.printJSON(raw)
}

func (e *env) showTranscript(ctx context.Context, c *connection, session string, at int64, thread string) error {
	s, err := c.Session(ctx, session)
	if err != nil {
		return err
	}
	switch {
	case at == -1:
		at = s.Head
	case at < 0 || at > s.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", s.ID, s.Head, at)
	}
	t := newTranscript(e.pen())
	if err := t.line("%s  %s", t.paint(bold, clean(titleOf(s))), t.paint(dim, s.ID+" · "+string(s.Status))); err != nil {
		return err
	}
	o := client.PageOptions{}
	if thread != "" {
		o.Threads = []string{thread}
	}
	for o.From < at {
		p, err := c.Page(ctx, session, o)
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			if r.Offset >= at {
				break
			}
			ev, err := r.Event()
			if err != nil {
				return err
			}
			if err := t.print(&ev); err != nil {
				return err
			}
		}
		o.From = p.Next
	}
	if t.at != "" {
		return t.line("%s", t.paint(dim, "…"))
	}
	return nil
}
