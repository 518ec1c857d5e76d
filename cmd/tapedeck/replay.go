package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/player"
)

type replayFlags struct {
	speed    float64
	skipIdle bool
	from     int64
	thread   string
}

func newReplay(e *env) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay SESSION",
		Short: "Play a session in a terminal at its original speed",
		Long: `Replay plays the recorded events of a session with their original timing. It does
not call the agent and appends nothing.

Keys:
  Space      play or pause; at the end, play again
  , .        one event back or forward
  [ ]        to the previous or next mark: user message, tool call, error
  t e u      to the next tool call, error, user message
  0 to 9     to that tenth of the time
  g G        to the beginning, to the end (also Home, End)
  < >        slower, faster: 0.5, 1, 2, 4, 8, 16
  s          skip idle time: gaps over 2 s take 0.3 s
  ?          help
  q          quit (also Ctrl-C)`,
		Example: `  tapedeck replay ses_01J…
  tapedeck replay ses_01J… --speed 4 --skip-idle --from 120`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error { return e.replay(c.Context(), args[0], f) },
	}
	c.Flags().Float64Var(&f.speed, "speed", 1, "speed, from 0.5 to 16")
	c.Flags().BoolVar(&f.skipIdle, "skip-idle", false, "play gaps over 2 s in 0.3 s")
	c.Flags().Int64Var(&f.from, "from", 0, "start at this offset")
	c.Flags().StringVar(&f.thread, "thread", "", "only events of this thread")
	return c
}

func (e *env) replay(ctx context.Context, session string, f replayFlags) error {
	switch {
	case !(f.speed >= 0.5 && f.speed <= 16): // true for NaN, too
		return usageError("--speed takes a number from 0.5 to 16")
	case f.from < 0:
		return usageError("--from takes an offset, from 0")
	case e.json:
		return usageError("replay has no --json; print the events with: tapedeck tail %s --json --no-follow", session)
	}
	in, out, ok := e.terminal()
	if !ok {
		return &exitError{exitUsage, tapedeck.Errorf(tapedeck.Invalid, "replay needs a terminal").
			WithHint("print the conversation with: tapedeck show %s", session)}
	}
	r := player.NewRecording(e.color(e.stdout), 100)
	// Other commands can use the data folder while the recording plays.
	if err := e.reading(ctx, func(c *connection) error { return e.record(ctx, c, session, f, r) }); err != nil {
		return err
	}
	return player.Play(ctx, in, out, r, player.Options{Speed: f.speed, SkipIdle: f.skipIdle, From: f.from})
}

// record reads the events that exist now. A run that is in progress is played up to
// its newest event.
func (e *env) record(ctx context.Context, c *connection, session string, f replayFlags, r *player.Recording) error {
	s, err := c.Session(ctx, session)
	if err != nil {
		return err
	}
	if f.from >= s.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for events from %d", s.ID, s.Head, f.from)
	}
	o := client.PageOptions{}
	if f.thread != "" {
		o.Threads = []string{f.thread}
	}
	n := 0
	return c.each(ctx, session, s.Head, o, func(ev *tapedeck.Event) error {
		if n++; n%50_000 == 0 {
			fmt.Fprintf(e.stderr, "\rreading %d of %d events", ev.Offset, s.Head)
		}
		return r.Add(ev)
	})
}

// terminal returns input and output, and whether both are a terminal.
func (e *env) terminal() (in, out *os.File, ok bool) {
	in, ok1 := e.stdin.(*os.File)
	out, ok2 := e.stdout.(*os.File)
	return in, out, ok1 && ok2 && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}
