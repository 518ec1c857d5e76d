package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

// runFlags say where a task goes.
type runFlags struct {
	task      tapedeck.Task // Session is that of --session
	resume    string
	copy      string
	overwrite string
	toPoint   int64
	fromPoint int64

	to, from *int64 // the offsets after the points, nil if none was given
}

func (f *runFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.task.Agent, "agent", "", "the agent; tapedeck agents lists them (default: the session's, else the first)")
	fl.StringVar(&f.task.Session, "session", "", "in this session")
	fl.StringVar(&f.resume, "resume", "", "go on with this session; without a task, where its last run stopped")
	fl.StringVar(&f.copy, "copy", "", "in a copy of this session")
	fl.Int64Var(&f.toPoint, "to-point", 0, "with --copy: the offset of the last event to copy (default: all)")
	fl.StringVar(&f.overwrite, "overwrite", "", "in this session, in the place of what comes after --from-point")
	fl.Int64Var(&f.fromPoint, "from-point", 0, "with --overwrite: the offset of the last event to keep (default: all)")
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
		"--resume without a task goes on with the agent it had, so --agent cannot be used": len(args) == 0 && f.task.Agent != "",
	} {
		if bad {
			return usageError("%s", flag)
		}
	}
	if err := f.checkSessions(); err != nil {
		return err
	}
	if f.to, err = pointOf(c, "to-point", f.toPoint); err != nil {
		return err
	}
	f.from, err = pointOf(c, "from-point", f.fromPoint)
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
func (e *env) begin(ctx context.Context, c *connection, f *runFlags) (tapedeck.Started, error) {
	t := f.task
	switch {
	case f.resume != "" && t.Text == "":
		return c.Resume(ctx, tapedeck.Resume{Session: f.resume, Thread: t.Thread, Config: t.Config})
	case f.resume != "":
		t.Session = f.resume
	case f.copy != "":
		return e.beginCopy(ctx, c, f)
	case f.overwrite != "":
		t.Session = f.overwrite
		if f.from == nil {
			break // nothing to take back: it goes on
		}
		done, err := c.Overwrite(ctx, tapedeck.Overwrite{Session: t.Session, FromOffset: *f.from, Thread: t.Thread})
		if err != nil {
			return tapedeck.Started{}, err
		}
		if done.Marker == "" {
			break // what is in force ends there
		}
		fmt.Fprintf(e.stderr, "overwriting from offset %d; take it back with: tapedeck undo %s %s\n", *f.from, t.Session, done.Marker)
	}
	return c.Run(ctx, t)
}

// beginCopy starts the task in a copy, which goes again if that is not possible.
func (e *env) beginCopy(ctx context.Context, c *connection, f *runFlags) (tapedeck.Started, error) {
	s, err := c.Fork(ctx, f.copyOf())
	if err != nil {
		return tapedeck.Started{}, err
	}
	t := f.task
	t.Session = s.ID
	started, err := c.Run(ctx, t)
	if err != nil {
		err = errors.Join(err, c.Delete(context.WithoutCancel(ctx), s.ID))
	}
	return started, err
}

func (f *runFlags) copyOf() tapedeck.Fork {
	fork := tapedeck.Fork{Parent: f.copy, At: f.to, Copy: true}
	if f.task.Title != "" {
		fork.Title = &f.task.Title
	}
	return fork
}
