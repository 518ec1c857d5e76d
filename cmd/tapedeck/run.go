package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
)

func newRun(e *env) *cobra.Command {
	var t tapedeck.Task
	c := &cobra.Command{
		Use:   `run "task"`,
		Short: "Give a task to an agent and print what it does",
		Long: `Run gives a task to an agent, in a new session or, with --session, in one that
exists, and prints the conversation as it streams; with --json, one event a
line.

The session's id goes to standard error.

Ctrl-C cancels the run and keeps what it has said; a second Ctrl-C leaves at
once. If this program ends in any other way, the run goes on. Exit codes: 0 done, 1 failed, 2 bad usage, 130 cancelled.`,
		Example: `  tapedeck run "tidy up the changelog" --agent coder
  tapedeck run "and now the readme" --session ses_01J…`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
				return usageError(`%s takes one task, in quotes; see: tapedeck run --help`, c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			t.Text = args[0]
			return e.with(context.WithoutCancel(c.Context()), func(conn *connection) error { return e.run(c.Context(), conn, t) })
		},
	}
	c.Flags().StringVar(&t.Agent, "agent", "", "the agent; tapedeck agents lists them (default: the session's, else the first)")
	c.Flags().StringVar(&t.Session, "session", "", "go on in this session")
	c.Flags().StringVar(&t.Thread, "thread", "", "in this thread of it (default main)")
	c.Flags().StringVar(&t.Title, "title", "", "title of a new session (default: from the task)")
	return c
}

// run starts the task and follows it to its end. interrupted is done at the
// first interrupt.
func (e *env) run(interrupted context.Context, c *connection, t tapedeck.Task) error {
	started, err := c.Run(interrupted, t)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "session %s\n", started.Session)
	r := &running{env: e, client: c, started: started, transcript: newTranscript(e.pen())}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(interrupted, func() { r.cancel(cancel) })
	defer stop()
	return r.follow(ctx)
}

// A running prints one invocation.
type running struct {
	*env
	client     *connection
	started    tapedeck.Started
	transcript *transcript
}

func (r *running) follow(ctx context.Context) error {
	o := client.FollowOptions{Until: true, Locate: r.client.locate}
	o.From, o.Invocation = r.started.Offset, r.started.Invocation
	o.OnReconnect = func(attempt int, _ error) {
		if attempt == 1 {
			fmt.Fprintln(r.stderr, "\ntapedeck: the connection was lost; reconnecting")
		}
	}
	for rec, err := range r.client.Follow(ctx, r.started.Session, o) {
		if errors.Is(err, context.Canceled) {
			return &exitError{code: exitCancelled}
		}
		if err != nil {
			return err
		}
		if end, err := r.print(rec); end || err != nil {
			return err
		}
	}
	return nil
}

// print prints one event and reports whether it is the last, and what it makes
// of the exit code.
func (r *running) print(rec tapedeck.Record) (bool, error) {
	ev, err := rec.Event()
	if err != nil {
		return true, err
	}
	if r.json {
		_, err = r.stdout.Write(append(rec.Data[:len(rec.Data):len(rec.Data)], '\n'))
	} else {
		err = r.transcript.print(&ev)
	}
	switch {
	case err != nil:
		return true, err
	case ev.Type == "RUN_ERROR":
		return true, &exitError{code: exitFailed}
	case ev.Type == "RUN_FINISHED" && strings.Contains(string(ev.Data), `"cancelled"`) && cancelled(&ev):
		return true, &exitError{code: exitCancelled}
	}
	return ev.Type == "RUN_FINISHED", nil
}

func cancelled(e *tapedeck.Event) bool {
	var s tapedeck.Session
	s.Apply(e)
	return s.Status == tapedeck.StatusCancelled
}

// cancel cancels the run; a second interrupt ends the program.
func (r *running) cancel(leave context.CancelFunc) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt)
	fmt.Fprintln(r.stderr, "\ntapedeck: cancelling (Ctrl-C again to leave at once)")
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	go func() {
		select {
		case <-again:
			leave()
			done()
		case <-ctx.Done():
		}
	}()
	_, err := r.client.Cancel(ctx, r.started.Session, r.started.Invocation)
	if err != nil && tapedeck.KindOf(err) != tapedeck.Conflict { // it ended by itself meanwhile
		r.printError(err)
		leave()
	}
}
