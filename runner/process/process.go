package process

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/runner"
)

// Options say which program to run, and how to interpret its output.
type Options struct {
	Name    string   // the agent's name; distinguishes its conversations from those of other agents; "" for the name of the program
	Dialect string   // see [Dialects]
	Mapping *Mapping // describes the dialect [Mapped]; other dialects ignore it

	// Command is the program and its arguments. Resume is the command that resumes a
	// conversation; nil if the program cannot. In the arguments, {task}, {session} and
	// {folder} are replaced by their values. No shell reads them. But a task that
	// begins with a dash looks like an option to the program, so write "--" before
	// {task}, or --name={task}.
	Command []string
	Resume  []string

	Env     []string // the whole environment of the program, NAME=value
	Folder  string   // the working directory if the invocation has no folder; "" for the server's own
	Install string   // a sentence that says how to install the program; it is the hint of the error if the program is missing; "" for no hint

	Sandbox *sandbox.Policy // confines the program; nil for no sandbox

	Grace time.Duration // time limit for each step of stopping the program; 0 for five seconds
}

// A Runner runs a program.
type Runner struct {
	options Options
	dialect dialect
}

var _ runner.Capable = (*Runner)(nil)

// New returns a runner. It returns an error if the dialect is unknown, or if the
// dialect [Mapped] has no valid mapping.
func New(o Options) (*Runner, error) {
	d, ok := dialects[o.Dialect]
	if o.Dialect == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the dialect is missing: what the program prints").
			WithHint("there are %s", strings.Join(Dialects(), ", "))
	}
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
	c.Steer = r.steers(r.options.Command) && (r.options.Resume == nil || r.steers(r.options.Resume))
	return c
}

// CheckConfig implements [runner.Configurable].
func (r *Runner) CheckConfig(config json.RawMessage) error { return runner.NoConfig(config) }

// Available implements [runner.Capable].
func (r *Runner) Available() error {
	if err := procgroup.Installed(r.options.Name, r.options.Command, r.options.Folder, r.options.Install); err != nil {
		return err
	}
	return r.options.Sandbox.Available(r.options.Command[0])
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

// link returns the runner name in the links that this runner stores in the log.
func (r *Runner) link() string { return "process:" + r.options.Name }

// run resumes the conversation of the thread. It begins a new conversation if there
// is none, or if the program cannot find it and has not done anything yet.
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
		lost = "the agent could not resume its conversation: " + narrate.Brief(err.Error(), nil)
	}
	task, err := r.recall(ctx, in, n, lost)
	if err != nil {
		return err
	}
	_, err = r.attempt(ctx, in, n, r.options.Command, task, "")
	return err
}

// Limits of an argument, in bytes. Linux accepts 128 KiB for one argument.
const (
	maxTask    = 120 << 10
	maxHistory = 60 << 10
)

// recall returns the task with the earlier conversation before it. lost says why the
// agent's own conversation cannot be resumed; "" if it has no conversation.
func (r *Runner) recall(ctx context.Context, in tapedeck.Invocation, n *narrate.Narrator, lost string) (string, error) {
	if in.History == nil {
		return in.Task, nil
	}
	before, err := narrate.History(ctx, in.Thread, maxHistory, in.History(ctx))
	if err != nil || before == "" {
		return in.Task, err
	}
	n.Lossy(cmp.Or(lost, "the agent has no conversation of its own with the whole history"), len(before))
	return before + "\n\n" + runner.TaskAfterHistory(&in), nil
}

// arguments returns the arguments of a command with the placeholders replaced.
func (r *Runner) arguments(command []string, task, session, folder string) ([]string, error) {
	if strings.ContainsRune(task, 0) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the task has a zero byte, which an argument of a program cannot contain")
	}
	fill := strings.NewReplacer("{task}", task, "{session}", session, "{folder}", folder)
	args := slices.Clone(command[1:])
	for i := range args {
		if args[i] = fill.Replace(args[i]); len(args[i]) > maxTask {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "the task has more than %d bytes, the limit of this agent", maxTask)
		}
	}
	return args, nil
}
