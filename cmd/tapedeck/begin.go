package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// runFlags are the flags of run: what to do before the task, and where it runs.
type runFlags struct {
	task      api.Task // Session is that of --session
	resume    string
	copy      string
	overwrite string
	toPoint   string
	fromPoint string
	instance  string // points count the context of this instance

	to, from point

	budget budgetFlags
}

func (f *runFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.task.Agent, "agent", "", "agent to use; list agents with: tapedeck agents (default: that of the session, otherwise the first)")
	fl.StringVar(&f.task.Session, "session", "", "run in this `SESSION`")
	fl.StringVar(&f.resume, "resume", "", "run in this `SESSION`; without a task, answer its last message, or continue where its last run stopped")
	fl.StringVar(&f.copy, "copy", "", "run in a copy of this `SESSION`")
	fl.StringVar(&f.toPoint, "to-point", "", pointUsage("with --copy, the last event to copy", "default: all"))
	fl.StringVar(&f.overwrite, "overwrite", "", "run in this `SESSION`, in place of the events after --from-point")
	fl.StringVar(&f.fromPoint, "from-point", "", pointUsage("with --overwrite, the last event to keep", "default: revert nothing"))
	fl.StringVar(&f.instance, "instance", "", instanceUsage+"; with --overwrite, the task runs in its thread")
	fl.StringVar(&f.task.Thread, "thread", "", "run in this thread (default main): a point N counts in its context, and --overwrite reverts only its events, also with @N")
	f.budget.register(fl)
	fl.StringVar(&f.task.Title, "title", "", "title of a new session (default: from the task)")
}

// check reads the arguments and refuses flags that cannot be used together.
func (f *runFlags) check(c *cobra.Command, args []string) (err error) {
	if err := f.checkSessions(c); err != nil {
		return err
	}
	if len(args) > 1 || len(args) == 1 && strings.TrimSpace(args[0]) == "" || len(args) == 0 && f.resume == "" {
		return f.noTask(c, len(args))
	}
	if len(args) == 1 {
		f.task.Text = args[0]
	}
	for flag, bad := range map[string]bool{
		"--to-point needs --copy SESSION":                                                  c.Flags().Changed("to-point") && f.copy == "",
		"--from-point needs --overwrite SESSION":                                           c.Flags().Changed("from-point") && f.overwrite == "",
		"--instance needs --to-point or --from-point":                                      f.instance != "" && f.toPoint == "" && f.fromPoint == "",
		"--resume without a task continues with the same agent, so --agent cannot be used": len(args) == 0 && f.task.Agent != "",
	} {
		if bad {
			return usageError("%s", flag)
		}
	}
	if f.task.Budget, err = f.budget.budget(); err != nil {
		return err
	}
	if f.to, err = readPoint(c, "to-point", f.toPoint, f.instance); err != nil {
		return err
	}
	f.from, err = readPoint(c, "from-point", f.fromPoint, f.instance)
	f.to.thread, f.from.thread, f.from.within, f.from.reverts = f.task.Thread, f.task.Thread, f.task.Thread, true
	return err
}

// noTask is the error for a run without a task, or with several.
func (f *runFlags) noTask(c *cobra.Command, given int) error {
	hint := "see: tapedeck run --help"
	switch {
	case given > 0:
	case f.copy != "":
		hint = "to copy without a task: tapedeck copy " + f.copy
	case f.overwrite != "":
		hint = "to overwrite without a task: tapedeck overwrite " + f.overwrite + " --from-point " + cmp.Or(f.fromPoint, "N")
	}
	return usageError(`%s takes one task, in quotes; %s`, c.CommandPath(), hint)
}

// checkSessions checks the flags that take a session. Without its id, such a flag takes the
// next word as the id: the task or another flag.
func (f *runFlags) checkSessions(c *cobra.Command) error {
	given := 0
	for _, flag := range []string{"session", "resume", "copy", "overwrite"} {
		if !c.Flags().Changed(flag) {
			continue
		}
		if given++; given > 1 {
			return usageError("--session, --resume, --copy and --overwrite cannot be used together")
		}
		if err := tapedeck.CheckID("the session id", c.Flags().Lookup(flag).Value.String()); err != nil {
			return &exitError{exitUsage, tapedeck.Errorf(tapedeck.Invalid, "--%s needs a session id; %w", flag, err).WithHint("list sessions with: tapedeck ls")}
		}
	}
	return nil
}

// isNew reports whether the task begins a session.
func (f *runFlags) isNew() bool {
	return f.task.Session == "" && f.resume == "" && f.copy == "" && f.overwrite == ""
}

// begin copies or overwrites first, if the flags say so, and starts the task.
func (e *env) begin(ctx context.Context, c *connection, f *runFlags) (api.Started, error) {
	t := f.task
	switch {
	case f.resume != "" && t.Text == "":
		return c.Resume(ctx, api.Resume{Session: f.resume, Thread: t.Thread, Config: t.Config, Budget: t.Budget})
	case f.resume != "":
		t.Session = f.resume
	case f.copy != "":
		return e.beginCopy(ctx, c, f)
	case f.overwrite != "":
		return e.beginOverwrite(ctx, c, f)
	}
	return c.Run(ctx, t)
}

// beginOverwrite starts the task in place of the events after --from-point.
func (e *env) beginOverwrite(ctx context.Context, c *connection, f *runFlags) (api.Started, error) {
	at, err := f.from.place(ctx, c, f.overwrite)
	if err != nil {
		return api.Started{}, err
	}
	t := f.task
	t.Session = f.overwrite
	if at != nil {
		t.Thread = cmp.Or(t.Thread, at.thread)
		t.Overwrite = &api.Overwrite{FromOffset: at.First, Thread: at.thread, Context: at.Context}
	}
	started, err := c.Run(ctx, t)
	if err == nil && started.Marker != "" { // otherwise nothing came after the point
		e.report(at)
		of := ""
		if at.thread != "" {
			of = " of thread " + at.thread
		}
		fmt.Fprintf(e.stderr, "reverted the events%s from offset %d on; undo with: tapedeck undo %s %s\n", of, at.First, f.overwrite, started.Marker)
	}
	return started, err
}

// beginCopy starts the task in a copy. If the task cannot start, it deletes the copy.
func (e *env) beginCopy(ctx context.Context, c *connection, f *runFlags) (api.Started, error) {
	at, err := f.to.place(ctx, c, f.copy)
	if err != nil {
		return api.Started{}, err
	}
	s, err := c.Fork(ctx, f.copyOf(at))
	if err != nil {
		return api.Started{}, err
	}
	t := f.task
	t.Session = s.ID
	started, err := c.Run(ctx, t)
	if err != nil {
		return started, errors.Join(err, c.Delete(context.WithoutCancel(ctx), s.ID))
	}
	e.report(at)
	return started, nil
}

func (f *runFlags) copyOf(at *cut) api.Fork {
	fork := api.Fork{Parent: f.copy, Copy: true}
	if at != nil {
		fork.At, fork.Context = &at.First, at.Context
	}
	if f.task.Title != "" {
		fork.Title = &f.task.Title
	}
	return fork
}
