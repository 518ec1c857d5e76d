package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// sayFlags are the flags of tapedeck say.
type sayFlags struct {
	task     api.Task
	withdraw string
	move     string
	before   string
	list     bool
}

func newSay(e *env) *cobra.Command {
	var f sayFlags
	c := &cobra.Command{
		Use:   `say SESSION ["text"]`,
		Short: "Send a message while an agent is running",
		Long: `Say sends a message to a session in which an agent is running. --when says what
becomes of it:

queue      it waits, and is run when the agent is done (the default)
steer      the agent gets it between two calls of its model; if it takes none
           before its end, the message is run next
interrupt  the agent is stopped, its partial answer stays, and the message is run
now        it is refused

If no agent is running, the message is run at once, and say prints what the agent
does, like tapedeck run.

A text "-" stands for standard input.

--list lists the messages that wait, and the newest of the others. --withdraw withdraws
one; --move puts one last, or with --before in front of another one.`,
		Example: `  tapedeck say ses_01J… "and then the readme"
  tapedeck say ses_01J… "leave the tests alone" --when steer
  tapedeck say ses_01J… --list
  tapedeck say ses_01J… --withdraw inp_01J…
  tapedeck say ses_01J… --move inp_01J… --before inp_01K…`,
		Args: sessionAnd(0, 1, "a session and a text, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			err := f.check(c, args)
			if err != nil {
				return err
			}
			if f.task.Text, err = e.text(f.task.Text); err != nil {
				return err
			}
			if err := e.exists(); err != nil {
				return err
			}
			e.startsAgents = f.task.Text != ""
			return e.with(context.WithoutCancel(c.Context()), func(conn *connection) error { return e.say(c.Context(), conn, &f) })
		},
	}
	c.Flags().StringVar(&f.task.When, "when", api.WhenQueue, "what becomes of the message: queue, steer, interrupt or now")
	c.Flags().StringVar(&f.task.Agent, "agent", "", "agent that gets the message (default: that of the open run, otherwise of what waits, otherwise of the session)")
	c.Flags().StringVar(&f.task.Thread, "thread", "", "thread of the message (default main)")
	c.Flags().BoolVar(&f.list, "list", false, "list the messages that wait")
	c.Flags().StringVar(&f.withdraw, "withdraw", "", "withdraw this message")
	c.Flags().StringVar(&f.move, "move", "", "change the place of this message")
	c.Flags().StringVar(&f.before, "before", "", "with --move: the message that will run after it (default: none, it runs last)")
	e.permissionsFlag(c)
	return c
}

// check checks that the command has exactly one thing to do.
func (f *sayFlags) check(c *cobra.Command, args []string) error {
	f.task.Session = args[0]
	n := 0
	for _, given := range []bool{len(args) == 2, f.list, f.withdraw != "", f.move != ""} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return usageError("say takes either a text in quotes, --list, --withdraw or --move; see: tapedeck say --help")
	case !slices.Contains(api.Whens, f.task.When):
		return usageError("--when takes %s, not %q", strings.Join(api.Whens, ", "), f.task.When)
	case f.before != "" && f.move == "":
		return usageError("--before goes with --move")
	case len(args) == 2:
		f.task.Text = args[1]
		return nil
	}
	for _, flag := range []string{"when", "agent", "permissions"} {
		if c.Flags().Changed(flag) {
			return usageError("--%s goes with a text", flag)
		}
	}
	if f.task.Thread != "" && !f.list {
		return usageError("--thread goes with a text or with --list")
	}
	return nil
}

func (e *env) say(interrupted context.Context, c *connection, f *sayFlags) error {
	session := f.task.Session
	switch {
	case f.list:
		list, err := c.Inputs(interrupted, session, f.task.Thread)
		if err != nil {
			return err
		}
		if len(list) == 0 && !e.json {
			where := "session " + session
			if f.task.Thread != "" {
				where = "thread " + f.task.Thread + " of " + where
			}
			e.notice("no message waits in %s", where)
		}
		return e.printInputs(list)
	case f.withdraw != "":
		in, err := c.Withdraw(interrupted, api.Withdraw{Session: session, Input: f.withdraw})
		return e.printInput(&in, err)
	case f.move != "":
		in, err := c.Move(interrupted, api.Move{Session: session, Input: f.move, Before: f.before})
		return e.printInput(&in, err)
	}
	started, err := c.Run(interrupted, f.task)
	if err != nil {
		return err
	}
	if started.Status == tapedeck.StatusRunning && started.Input == "" {
		return e.run(interrupted, c, func(context.Context) (api.Started, error) { return started, nil })
	}
	return e.printQueued(&started)
}

// printQueued prints what became of a message for a busy thread.
func (e *env) printQueued(s *api.Started) error {
	if e.json {
		return e.printJSON(s)
	}
	if s.Note != "" {
		e.notice("%s", terminal.Clean(s.Note))
	}
	what := map[string]string{
		api.WhenQueue: "waits for its turn", api.WhenSteer: "waits for the next call of the model", api.WhenInterrupt: "waits for the end of the run",
	}[s.When]
	if s.Note != "" && s.When != api.WhenQueue { // the program decides
		what = "waits"
	}
	if s.Status != view.InputWaiting {
		what = "is " + string(s.Status) + " as " + s.Invocation
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s\n", s.Input, what)
	return err
}

// printInput prints an input after a change.
func (e *env) printInput(in *view.Input, err error) error {
	if err != nil {
		return err
	}
	return e.printInputs([]view.Input{*in})
}

func (e *env) printInputs(list []view.Input) error {
	p := e.pen()
	for i := range list {
		in := &list[i]
		if e.json {
			if err := e.printJSON(in); err != nil {
				return err
			}
			continue
		}
		what := in.Text
		switch {
		case what == "" && in.Invocation != "":
			what = "in " + in.Invocation
		case in.Reason != "":
			what += " (" + in.Reason + ")"
		case in.Outside && in.Status == view.InputWaiting:
			what += " (until " + cmp.Or(in.Agent, "its program") + " takes it)"
		}
		thread := ""
		if in.Thread != tapedeck.MainThread {
			thread = p.Paint(terminal.Blue, "["+in.Thread+"]") + " "
		}
		if err := p.Printf("%s  %-9s  %-9s  %s%s\n", in.ID, in.Status, in.When, thread, terminal.Brief(terminal.Visible(what), max(20, p.Width-54))); err != nil {
			return err
		}
	}
	return nil
}
