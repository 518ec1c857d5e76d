package process

import (
	"cmp"
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/runner"
)

// Options say which program to run, and how to understand it.
type Options struct {
	Name    string   // of the agent, which tells its conversations from those of others; "" for the name of the program
	Dialect string   // see [Dialects]
	Mapping *Mapping // of the dialect [Mapped]

	// Command is the program and its arguments, Resume likewise to go on with a
	// conversation; nil if that is not possible. In the arguments {task}, {session}
	// and {folder} stand for what they say. No shell ever sees them; but an argument
	// that is nothing but {task} may look like an option to the program, so "--"
	// should come before it, or --name= in it.
	Command []string
	Resume  []string

	Env     []string // all of its environment, NAME=value
	Folder  string   // where it works if the invocation has no folder; "" for our own
	Install string   // what to do if the program is not there; "" for nothing to say

	Grace time.Duration // how long it gets for each step of its end; 0 for five seconds
}

// A Runner runs a program.
type Runner struct {
	options Options
	dialect dialect
}

var _ runner.Capable = (*Runner)(nil)

// New returns a runner. It is an error if there is no such dialect, or the
// mapping says nothing.
func New(o Options) (*Runner, error) {
	d, ok := dialects[o.Dialect]
	if !ok {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is no dialect %q", o.Dialect).
			WithHint("there are %s", strings.Join(Dialects(), ", "))
	}
	if o.Dialect == Mapped {
		if err := o.Mapping.check(); err != nil {
			return nil, err
		}
		d = o.Mapping.dialect()
	}
	if o.Name == "" && len(o.Command) > 0 {
		o.Name = filepath.Base(o.Command[0])
	}
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	return &Runner{o, d}, nil
}

// Capabilities implements [runner.Capable].
func (r *Runner) Capabilities() tapedeck.Capabilities {
	c := r.dialect.can
	c.Resume = r.options.Resume != nil
	c.Interrupt = true
	return c
}

// Available implements [runner.Capable].
func (r *Runner) Available() error {
	return procgroup.Installed(r.options.Name, r.options.Command, r.options.Install)
}

// Run implements [tapedeck.Runner].
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		n := narrate.New(in.ID, yield)
		if err := r.run(ctx, in, n); err != nil && ctx.Err() == nil {
			n.Fail(err)
		}
	}
}

// link is the name of our conversations in the log.
func (r *Runner) link() string { return "process:" + r.options.Name }

// run goes on with the conversation that the thread has had, or begins one, also
// if the program cannot find the other.
func (r *Runner) run(ctx context.Context, in tapedeck.Invocation, n *narrate.Narrator) error {
	if err := r.Available(); err != nil {
		return err
	}
	lost := ""
	if l := in.Link; l != nil && l.Runner == r.link() && l.NativeID != "" && r.options.Resume != nil {
		s, err := r.attempt(ctx, in, n, r.options.Resume, in.Task, l.NativeID)
		if err == nil || s == nil || s.worked || n.Over() || ctx.Err() != nil {
			return err
		}
		lost = "the agent could not go on with its conversation: " + narrate.Brief(err.Error())
	}
	task, err := r.recall(ctx, in, n, lost)
	if err != nil {
		return err
	}
	_, err = r.attempt(ctx, in, n, r.options.Command, task, "")
	return err
}

// Bounds of what can be handed over as an argument: Linux takes 128 KiB.
const (
	maxTask    = 120 << 10
	maxHistory = 60 << 10
)

// recall returns the task with what was said before.
func (r *Runner) recall(ctx context.Context, in tapedeck.Invocation, n *narrate.Narrator, lost string) (string, error) {
	if in.History == nil {
		return in.Task, nil
	}
	before, err := narrate.History(ctx, in.Thread, maxHistory, in.History(ctx))
	if err != nil || before == "" {
		return in.Task, err
	}
	n.Lossy(cmp.Or(lost, "the agent has no conversation of its own that has all of it"), len(before))
	return before + "\n\n" + in.TaskAfterHistory(), nil
}

// arguments fills in the arguments of a command.
func (r *Runner) arguments(command []string, task, session, folder string) ([]string, error) {
	if strings.ContainsRune(task, 0) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the task has a zero byte, which no program can be given")
	}
	fill := strings.NewReplacer("{task}", task, "{session}", session, "{folder}", folder)
	args := slices.Clone(command[1:])
	for i := range args {
		if args[i] = fill.Replace(args[i]); len(args[i]) > maxTask {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "the task has more than %d bytes, which this agent cannot be given", maxTask)
		}
	}
	return args, nil
}
