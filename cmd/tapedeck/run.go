package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
)

func newRun(e *env) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   `run "task"`,
		Short: "Give a task to an agent and print what it does",
		Long: `Run gives a task to an agent, in a new session or in an existing one, and prints
the conversation as it streams. With --json it prints one event per line. The
session id goes to standard error.

--session    run the task in this session
--resume     the same; without a task, the agent answers the last message, if nobody
             has, or continues where its run stopped
--copy       run the task in a copy of a session; --to-point N copies up to and
             including event N of its context
--overwrite  run the task in a session; --from-point N reverts the events after
             event N of its context (undo with: tapedeck undo), and leaves other
             threads as they are; @N reverts those, too. Without
             --from-point it is the same as --session

tapedeck context shows the events with their numbers. @N is an offset of the session
in place of such a number. If a number is inside a run, the agent is not told of the
cut. If an offset is, the agent is told that the run was interrupted.

A task "-" stands for standard input.

--max-tokens, --max-usd, --max-turns and --max-time set what this run may use before
it pauses and asks whether to continue.

Ctrl-C cancels the run and keeps its partial answer; a second Ctrl-C exits at once.
If this program ends in another way, such as by a signal or because its terminal
closes, and a server holds the session, the run continues in the server.

Exit codes: 0 done, 1 failed, 2 bad usage, 130 cancelled, 129 ended by SIGHUP,
143 ended by SIGTERM.`,
		Example: `  tapedeck run "tidy up the changelog" --agent coder
  tapedeck run "and now the readme" --session ses_01J…
  tapedeck run --resume ses_01J…
  tapedeck run "try it another way" --copy ses_01J… --to-point 4
  tapedeck run "try it another way" --overwrite ses_01J… --from-point @41`,
		Args: f.check,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.task.Text, err = e.text(f.task.Text); err != nil {
				return err
			}
			e.startsAgents = true
			with := e.withExisting
			if f.isNew() {
				with = e.with
			}
			return with(context.WithoutCancel(c.Context()), func(conn *connection) error {
				return e.run(c.Context(), conn, func(ctx context.Context) (api.Started, error) { return e.begin(ctx, conn, &f) })
			})
		},
	}
	f.register(c)
	e.ephemeralFlag(c)
	e.permissionsFlag(c)
	return c
}

// run starts a run and follows it to its end. The first signal ends the context
// interrupted.
func (e *env) run(interrupted context.Context, c *connection, start func(context.Context) (api.Started, error)) error {
	return e.attend(interrupted, c, false, start)
}

// attend is run. With tasks it also hears the agents that do tasks of a workflow.
func (e *env) attend(interrupted context.Context, c *connection, tasks bool, start func(context.Context) (api.Started, error)) error {
	if err := e.checkPermissions(); err != nil {
		return err
	}
	started, err := start(interrupted)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "session %s\n", started.Session)
	r := &running{env: e, client: c, started: started, transcript: transcript.New(e.pen()), tasks: tasks && !e.json}
	r.desk = &desk{env: e, client: c, session: started.Session}
	defer r.desk.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var leaving atomic.Int32
	stop := context.AfterFunc(interrupted, func() {
		if code := r.leaves(interrupted); code != 0 {
			leaving.Store(int32(code))
			cancel()
			return
		}
		r.cancel(cancel)
	})
	defer stop()
	err = r.follow(ctx)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitCancelled {
		return err
	}
	if code := leaving.Load(); code != 0 {
		return &exitError{code: int(code)}
	}
	e.cancelledElsewhere = interrupted.Err() == nil
	return err
}

// leaves returns the exit code if a signal ends this program but not the run,
// otherwise 0. Only Ctrl-C cancels the run; if the terminal closes, for example, a
// server continues it. A run in this process always ends with the process.
func (r *running) leaves(interrupted context.Context) int {
	var e *signalError
	if r.client.holds() || !errors.As(context.Cause(interrupted), &e) || e.signal == os.Interrupt {
		return 0
	}
	fmt.Fprintln(r.stderr)
	if r.lost.Load() {
		r.notice("exiting; no server is there, so the run may have ended, see: tapedeck show %s", r.started.Session)
	} else {
		r.notice("exiting; the run continues, see: tapedeck tail %s", r.started.Session)
	}
	if n, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailed
}

// A running prints the events of one invocation.
type running struct {
	*env
	client     *connection
	started    api.Started
	transcript *transcript.Transcript
	tree       *elementTree // of a workflow; nil if the run is none
	tasks      bool         // it hears the agents of tasks
	desk       *desk
	lost       atomic.Bool // the connection to the server, and it is not back
}

func (r *running) follow(ctx context.Context) error {
	o := client.FollowOptions{Until: true, Locate: r.client.locate}
	o.From, o.Invocation = r.started.Offset, r.started.Invocation
	if r.tasks { // they have invocations of their own; print sees the end of this run
		o.Until, o.Invocation = false, ""
	}
	o.OnReconnect = func(attempt int, _ error) {
		if attempt == 1 {
			fmt.Fprintln(r.stderr)
			r.lost.Store(true)
			r.notice("the connection was lost; reconnecting until a server is back")
		}
	}
	for rec, err := range r.client.Follow(ctx, r.started.Session, o) {
		if errors.Is(err, context.Canceled) {
			return &exitError{code: exitCancelled}
		}
		if err != nil {
			return err
		}
		r.lost.Store(false)
		if end, err := r.print(ctx, rec); end || err != nil {
			return err
		}
	}
	return nil
}

// print prints one event. It reports whether this is the last event of the run; the
// error then has the exit code.
func (r *running) print(ctx context.Context, rec tapedeck.Record) (bool, error) {
	ev, err := rec.Event()
	if err != nil {
		return true, err
	}
	if r.tasks && ev.Invocation != r.started.Invocation {
		if r.tree != nil {
			err = r.tree.hear(&ev)
		}
		return err != nil, err
	}
	if r.json {
		err = r.printRecord(rec.Data)
	} else {
		err = r.show(&ev)
	}
	r.desk.handle(ctx, &ev)
	switch {
	case err != nil:
		return true, err
	case ev.Type == "RUN_ERROR":
		r.hint(&ev)
		return true, &exitError{code: exitFailed}
	case ev.Type == "RUN_FINISHED" && strings.Contains(string(ev.Data), `"cancelled"`) && cancelled(&ev):
		return true, &exitError{code: exitCancelled}
	}
	return ev.Type == "RUN_FINISHED", nil
}

// show prints an event for people. From its first event on, a workflow is shown as a tree.
func (r *running) show(ev *tapedeck.Event) error {
	if r.tree == nil && ev.Type == tapedeck.WorkflowStarted {
		r.tree = newElementTree(r.pen())
	}
	switch {
	case r.tree == nil || ev.Type == tapedeck.RunFinished || ev.Type == tapedeck.RunError:
		return r.transcript.Print(ev)
	case ev.Type == tapedeck.PermissionRequested:
		return r.tree.question(ev)
	}
	_, err := r.tree.print(ev)
	return err
}

// hint says how to resume a run that a crash ended.
func (r *running) hint(e *tapedeck.Event) {
	if endStatus(e) != tapedeck.StatusInterrupted || r.json {
		return
	}
	thread := ""
	if e.ThreadName() != tapedeck.MainThread {
		thread = " --thread " + e.ThreadName()
	}
	fmt.Fprintf(r.stderr, "resume with: tapedeck resume %s%s\n", r.started.Session, thread)
}

func cancelled(e *tapedeck.Event) bool { return endStatus(e) == tapedeck.StatusCancelled }

// endStatus returns the status of a session after a terminal event.
func endStatus(e *tapedeck.Event) tapedeck.Status {
	var s tapedeck.Session
	s.Apply(e)
	return s.Status
}

// cancel cancels the run; a second interrupt ends the program.
func (r *running) cancel(leave context.CancelFunc) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt)
	fmt.Fprintln(r.stderr)
	r.notice("cancelling (Ctrl-C again to leave at once)")
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
	r.client.holdInputs()
	_, err := r.client.Cancel(ctx, r.started.Session, r.started.Invocation)
	switch {
	case err == nil, errors.Is(err, context.Canceled): // Canceled: the user pressed Ctrl-C again
	case tapedeck.KindOf(err) == tapedeck.Conflict: // the run ended by itself meanwhile
	default:
		r.printError(err)
		leave()
	}
}
