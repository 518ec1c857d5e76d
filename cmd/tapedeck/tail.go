package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

type tailFlags struct {
	from     int64
	last     int64
	noFollow bool
	filter   client.PageOptions
}

func newTail(e *env) *cobra.Command {
	var f tailFlags
	c := &cobra.Command{
		Use:   "tail SESSION",
		Short: "Print the events of a session and follow new ones",
		Long: `Tail prints one line for each event of a session, from the first one, and then
follows new events until the session is closed. It survives a restart of the
server: it reconnects and continues where it stopped. It prints each event once.`,
		Example: `  tapedeck tail ses_01J… -n 20
  tapedeck tail ses_01J… --json --no-follow > events.ndjson`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if f.last < 0 && c.Flags().Changed("last") {
				return usageError("--last takes a number from 0")
			}
			return e.tail(c.Context(), args[0], f)
		},
	}
	c.Flags().Int64Var(&f.from, "from", 0, "start at this offset")
	c.Flags().Int64VarP(&f.last, "last", "n", -1, "start with the last N events (default: all)")
	c.Flags().Lookup("last").DefValue = "0" // as with atFlag
	c.Flags().BoolVar(&f.noFollow, "no-follow", false, "stop at the newest event")
	c.Flags().StringSliceVar(&f.filter.Channels, "channel", nil, "only events of these channels and of the channel session")
	c.Flags().StringSliceVar(&f.filter.Threads, "thread", nil, "only events of these threads")
	c.Flags().StringSliceVar(&f.filter.Types, "type", nil, "only events of these types")
	c.Flags().StringVar(&f.filter.Invocation, "invocation", "", "only events of this invocation")
	return c
}

func (e *env) tail(ctx context.Context, session string, f tailFlags) error {
	switch {
	case f.from < 0:
		return usageError("--from takes an offset, from 0")
	case f.from > 0 && f.last >= 0:
		return usageError("--from and --last cannot be used together")
	}
	for _, typ := range f.filter.Types {
		if meant := nearType(typ); meant != "" {
			e.notice("%s is no type of the catalogue, only one of your own can have this name; is it %s?", terminal.Clean(typ), meant)
		}
	}
	t := &tailing{env: e, pen: e.pen(), session: session, flags: f}
	if err := e.reading(ctx, func(c *connection) error { return t.begin(ctx, c) }); err != nil || t.ended || f.noFollow {
		return err
	}
	// This process held the folder itself, so no other process could write. The
	// folder is free now: wait for a server and follow it.
	e.notice("no server is running; waiting for one (Ctrl-C to stop)")
	c, err := e.await(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return t.follow(ctx, c)
}

// A tailing prints the events of a session from a cursor on.
type tailing struct {
	*env
	pen     terminal.Pen
	session string
	flags   tailFlags
	cursor  int64
	ended   bool
}

func (t *tailing) begin(ctx context.Context, c *connection) error {
	s, err := c.Session(ctx, t.session)
	if err != nil {
		return err
	}
	t.cursor = t.flags.from
	if t.flags.last >= 0 {
		t.cursor = max(0, s.Head-t.flags.last)
	}
	if t.cursor > s.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for events from %d", s.ID, s.Head, t.cursor)
	}
	if c.local == nil && !t.flags.noFollow {
		t.ended = true
		return t.follow(ctx, c)
	}
	return t.history(ctx, c, s)
}

// history prints the events that exist.
func (t *tailing) history(ctx context.Context, c *connection, s tapedeck.Session) error {
	for t.cursor < s.Head {
		o := t.flags.filter
		o.From = t.cursor
		p, err := c.Page(ctx, t.session, o)
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			if err := t.print(r); err != nil {
				return err
			}
		}
		t.cursor = p.Next
	}
	t.ended = s.Closed
	return nil
}

func (t *tailing) follow(ctx context.Context, c *connection) error {
	o := client.FollowOptions{PageOptions: t.flags.filter, Locate: c.locate}
	o.From = t.cursor
	o.OnReconnect = func(attempt int, _ error) {
		if attempt == 1 {
			t.notice("the connection was lost; reconnecting")
		}
	}
	for r, err := range c.Follow(ctx, t.session, o) {
		if err != nil {
			return err
		}
		if err := t.print(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailing) print(r tapedeck.Record) error {
	if t.json {
		return t.printRecord(r.Data)
	}
	ev, err := r.Event()
	if err != nil {
		return err
	}
	return t.pen.Printf("%s\n", eventLine(t.pen, &ev))
}

// await waits until a server holds the data folder.
func (e *env) await(ctx context.Context) (*connection, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if c := e.locate(); c != nil && c.Ping(ctx) == nil {
			return &connection{Client: c, locate: e.locate}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}
