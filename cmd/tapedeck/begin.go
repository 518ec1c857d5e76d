package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// runFlags say where a task goes.
type runFlags struct {
	task      api.Task // Session is that of --session
	resume    string
	copy      string
	overwrite string
	toPoint   string
	fromPoint string
	instance  string // whose context the points count

	to, from point
}

func (f *runFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.task.Agent, "agent", "", "the agent; tapedeck agents lists them (default: the session's, else the first)")
	fl.StringVar(&f.task.Session, "session", "", "in this session")
	fl.StringVar(&f.resume, "resume", "", "go on with this session; without a task, where its last run stopped")
	fl.StringVar(&f.copy, "copy", "", "in a copy of this session")
	fl.StringVar(&f.toPoint, "to-point", "", pointUsage("with --copy, the last event to copy", "default: all"))
	fl.StringVar(&f.overwrite, "overwrite", "", "in this session, in the place of what comes after --from-point")
	fl.StringVar(&f.fromPoint, "from-point", "", pointUsage("with --overwrite, the last event to keep", "default: the session goes on, nothing is taken back"))
	fl.StringVar(&f.instance, "instance", "", instanceUsage)
	fl.StringVar(&f.task.Thread, "thread", "", "in this thread of it (default main)")
	fl.StringVar(&f.task.Title, "title", "", "title of a new session (default: from the task)")
}

// check reads the arguments and reports flags that make no sense together.
func (f *runFlags) check(c *cobra.Command, args []string) (err error) {
	if len(args) > 1 || len(args) == 1 && strings.TrimSpace(args[0]) == "" || len(args) == 0 && f.resume == "" {
		return usageError(`%s takes one task, in quotes; see: tapedeck run --help`, c.CommandPath())
	}
	if len(args) == 1 {
		f.task.Text = args[0]
	}
	for flag, bad := range map[string]bool{
		"--to-point needs --copy SESSION":                                                  c.Flags().Changed("to-point") && f.copy == "",
		"--from-point needs --overwrite SESSION":                                           c.Flags().Changed("from-point") && f.overwrite == "",
		"--instance needs --to-point or --from-point":                                      f.instance != "" && f.toPoint == "" && f.fromPoint == "",
		"--resume without a task goes on with the agent it had, so --agent cannot be used": len(args) == 0 && f.task.Agent != "",
	} {
		if bad {
			return usageError("%s", flag)
		}
	}
	if err := f.checkSessions(); err != nil {
		return err
	}
	if f.to, err = readPoint(c, "to-point", f.toPoint, f.instance); err != nil {
		return err
	}
	f.from, err = readPoint(c, "from-point", f.fromPoint, f.instance)
	f.to.thread, f.from.thread, f.from.within = f.task.Thread, f.task.Thread, f.task.Thread
	return err
}

func (f *runFlags) checkSessions() error {
	given := 0
	for _, id := range []string{f.task.Session, f.resume, f.copy, f.overwrite} {
		if id == "" {
			continue
		}
		if given++; given > 1 {
			return usageError("--session, --resume, --copy and --overwrite exclude each other")
		}
		if err := tapedeck.CheckID("the session id", id); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	return nil
}

// begin does what comes before the task, and starts it.
func (e *env) begin(ctx context.Context, c *connection, f *runFlags) (api.Started, error) {
	t := f.task
	switch {
	case f.resume != "" && t.Text == "":
		return c.Resume(ctx, api.Resume{Session: f.resume, Thread: t.Thread, Config: t.Config})
	case f.resume != "":
		t.Session = f.resume
	case f.copy != "":
		return e.beginCopy(ctx, c, f)
	case f.overwrite != "":
		t.Session = f.overwrite
		if err := e.makeRoom(ctx, c, f); err != nil {
			return api.Started{}, err
		}
	}
	return c.Run(ctx, t)
}

// makeRoom reverts what comes after --from-point.
func (e *env) makeRoom(ctx context.Context, c *connection, f *runFlags) error {
	at, err := f.from.place(ctx, c, f.overwrite)
	if err != nil || at == nil {
		return err
	}
	done, err := c.Overwrite(ctx, api.Overwrite{Session: f.overwrite, FromOffset: at.First, Thread: f.task.Thread})
	if err != nil || done.Marker == "" { // nothing comes after the point
		return err
	}
	e.report(at)
	fmt.Fprintf(e.stderr, "overwriting from offset %d; take it back with: tapedeck undo %s %s\n", at.First, f.overwrite, done.Marker)
	return nil
}

// beginCopy starts the task in a copy, which goes again if that is not possible.
func (e *env) beginCopy(ctx context.Context, c *connection, f *runFlags) (api.Started, error) {
	at, err := f.to.place(ctx, c, f.copy)
	if err != nil {
		return api.Started{}, err
	}
	s, err := c.Fork(ctx, f.copyOf(at))
	if err != nil {
		return api.Started{}, err
	}
	e.report(at)
	t := f.task
	t.Session = s.ID
	started, err := c.Run(ctx, t)
	if err != nil {
		err = errors.Join(err, c.Delete(context.WithoutCancel(ctx), s.ID))
	}
	return started, err
}

func (f *runFlags) copyOf(at *cut) api.Fork {
	fork := api.Fork{Parent: f.copy, Copy: true}
	if at != nil {
		fork.At = &at.First
	}
	if f.task.Title != "" {
		fork.Title = &f.task.Title
	}
	return fork
}
