package main

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/view"
)

// timeline returns which events of a session are active before an offset.
func (c *connection) timeline(ctx context.Context, session string, at int64) (*view.Timeline, error) {
	var jumps []tapedeck.Jump
	err := c.jumps(ctx, session, at, func(j tapedeck.Jump) { jumps = append(jumps, j) })
	return view.NewTimeline(jumps), err
}

// jumps calls f for each rewind, clear, overwrite and attempt of a session before an offset.
func (c *connection) jumps(ctx context.Context, session string, at int64, f func(tapedeck.Jump)) error {
	o := client.PageOptions{Types: []string{tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten, tapedeck.AttemptSuperseded}}
	return c.each(ctx, session, at, o, func(ev *tapedeck.Event) error {
		if j, ok := ev.Jump(); ok {
			f(j)
		}
		return nil
	})
}

// hasThread refuses a thread without events: an empty conversation would look like
// the answer to a mistyped name.
func (c *connection) hasThread(ctx context.Context, session, thread string) error {
	if thread == "" || thread == tapedeck.MainThread {
		return nil
	}
	s, err := c.Session(ctx, session)
	if err != nil {
		return err
	}
	err = c.each(ctx, session, s.Head, client.PageOptions{Threads: []string{thread}}, func(ev *tapedeck.Event) error {
		if ev.ThreadName() == thread { // events of the session belong to every thread
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err != nil:
		return err
	}
	return tapedeck.Errorf(tapedeck.NotFound, "there is no thread %q in session %s", thread, session)
}

// each calls f for the events of a session before an offset.
func (c *connection) each(ctx context.Context, session string, before int64, o client.PageOptions, f func(*tapedeck.Event) error) error {
	for o.From < before {
		p, err := c.Page(ctx, session, o)
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			if r.Offset >= before {
				return nil
			}
			ev, err := r.Event()
			if err == nil {
				err = f(&ev)
			}
			if err != nil {
				return err
			}
		}
		o.From, o.Gen = p.Next, p.Gen
	}
	return nil
}
