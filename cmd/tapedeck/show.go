package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
	"github.com/tapedeck/tapedeck/view"
)

// A showing is the conversation to print.
type showing struct {
	session string
	at      int64
	thread  string
	all     bool // also reverted events
}

func newShow(e *env) *cobra.Command {
	var w showing
	c := &cobra.Command{
		Use:   "show SESSION",
		Short: "Print the conversation of a session",
		Long: `Show prints a session as a conversation: messages, thinking, tool calls, plans and
how its runs ended. It leaves out reverted events, unless you pass --all. With
--json it prints the snapshot view: messages, tool calls, runs and state, each with
its offset and invocation.`,
		Example: `  tapedeck show ses_01J…
  tapedeck show ses_01J… --at 120 --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			w.session = args[0]
			if err := checkAt(c, w.at); err != nil {
				return err
			}
			if e.json && w.all {
				return usageError("a snapshot has active events only; print all events with: tapedeck tail %s --json --no-follow", w.session)
			}
			return e.reading(c.Context(), func(conn *connection) error {
				if err := conn.hasThread(c.Context(), w.session, w.thread); err != nil {
					return err
				}
				if e.json {
					return e.showSnapshot(c.Context(), conn, &w)
				}
				return e.showTranscript(c.Context(), conn, &w)
			})
		},
	}
	atFlag(c, &w.at)
	c.Flags().StringVar(&w.thread, "thread", "", "only this thread")
	c.Flags().BoolVar(&w.all, "all", false, "also print reverted events")
	return c
}

func (e *env) showSnapshot(ctx context.Context, c *connection, w *showing) error {
	s, err := c.Snapshot(ctx, w.session, view.Query{At: new(w.at), Thread: w.thread})
	if err != nil {
		return err
	}
	return e.printJSON(s)
}

func (e *env) showTranscript(ctx context.Context, c *connection, w *showing) error {
	s, err := c.Session(ctx, w.session)
	if err != nil {
		return err
	}
	switch {
	case w.at == -1:
		w.at = s.Head
	case w.at < 0 || w.at > s.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", s.ID, s.Head, w.at)
	}
	facts, err := c.facts(ctx, &s, w)
	if err != nil {
		return err
	}
	p := e.pen()
	t := transcript.New(p)
	if err := t.Line("%s  %s", p.Paint(terminal.Bold, terminal.Clean(titleOf(s))), p.Paint(terminal.Dim, facts)); err != nil {
		return err
	}
	var timeline *view.Timeline
	if !w.all {
		if timeline, err = c.timeline(ctx, w.session, w.at); err != nil {
			return err
		}
	}
	o := client.PageOptions{}
	if w.thread != "" {
		o.Threads = []string{w.thread}
	}
	if err := c.each(ctx, w.session, w.at, o, func(ev *tapedeck.Event) error {
		if _, jump := ev.Jump(); !w.all && (jump || !timeline.Has(ev.Offset, ev.ThreadName(), w.at)) {
			return nil
		}
		return t.Print(ev)
	}); err != nil {
		return err
	}
	if t.Streaming() {
		return t.Line("%s", p.Paint(terminal.Dim, "…"))
	}
	return nil
}

// facts returns the text beside the title: the id of the session and its status at
// the offset that is shown.
func (c *connection) facts(ctx context.Context, s *tapedeck.Session, w *showing) (string, error) {
	if w.at == s.Head {
		facts := s.ID + " · " + string(s.Status)
		if s.Budget != nil {
			facts += " · " + spending(s, time.Now())
		}
		return facts, nil
	}
	then, err := c.Snapshot(ctx, s.ID, view.Query{At: new(w.at)})
	return fmt.Sprintf("%s · %s · before offset %d", s.ID, then.Session.Status, w.at), err
}
