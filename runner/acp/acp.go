package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"path/filepath"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/runner"
)

// Options configure a runner.
type Options struct {
	Name    string   // the agent's name; distinguishes its conversations from those of other agents; "" for the name of the program
	Command []string // the program and its arguments
	Env     []string // the whole environment of the program, NAME=value
	Folder  string   // the working directory if the invocation has no folder; "" for the server's own
	Auth    string   // the id of the agent's authentication method to use; "" to skip authentication
	Mode    string   // the id of the mode to set; "" for the agent's choice
	MCP     []sdk.McpServer
	Install string // a sentence that says how to install the program; it is the hint of the error if the program is missing; "" for no hint

	Sandbox *sandbox.Policy // confines the program; nil for no sandbox

	Start time.Duration // time limit until the agent is ready for the task; 0 for a minute
	Grace time.Duration // time limit for each step of stopping the program; 0 for five seconds
	Quiet time.Duration // how long the agent must be silent after its turn before it is ended; 0 for 0.3 seconds
}

// A Runner runs an agent.
type Runner struct {
	options Options
	launch  func(procgroup.Spec) (started, error)
	steers  atomic.Bool // the agent announced in its newest run that it takes messages while it works
}

var _ runner.Capable = (*Runner)(nil)

// New returns a runner.
func New(o Options) *Runner {
	if o.Name == "" && len(o.Command) > 0 {
		o.Name = filepath.Base(o.Command[0])
	}
	o.Start, o.Grace, o.Quiet = cmp.Or(o.Start, time.Minute), cmp.Or(o.Grace, 5*time.Second), cmp.Or(o.Quiet, 300*time.Millisecond)
	return &Runner{options: o, launch: launch}
}

// Capabilities implements [runner.Capable]. It reports everything that the protocol
// supports. Most agents support most of it. Whether the agent can be steered is known
// once it has run.
func (r *Runner) Capabilities() tapedeck.Capabilities {
	return tapedeck.Capabilities{
		Deltas: true, Thinking: true, Tools: true, Plan: true, Permission: true, Interrupt: true, Resume: true,
		Steer: r.steers.Load(),
	}
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
		if err := r.Available(); err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		n := narrate.New(in.ID, yield)
		c, err := r.start(ctx, in, n)
		if err != nil {
			n.Fail(err)
			return
		}
		defer c.end()
		if err := c.run(); err != nil && ctx.Err() == nil {
			n.Fail(err)
		}
	}
}

// link returns the runner name in the links that this runner stores in the log.
func (r *Runner) link() string { return "acp:" + r.options.Name }

// start starts the program.
func (r *Runner) start(ctx context.Context, in tapedeck.Invocation, n *narrate.Narrator) (*conversation, error) {
	dir, err := filepath.Abs(cmp.Or(in.Folder, r.options.Folder, "."))
	if err != nil {
		return nil, err
	}
	o := &r.options
	spec, err := o.Sandbox.Confine(procgroup.Spec{Path: o.Command[0], Args: o.Command[1:], Dir: dir, Env: o.Env, Stdin: true})
	if err != nil {
		return nil, err
	}
	p, err := r.launch(spec)
	if err != nil {
		return nil, procgroup.Failed(o.Command[0], err)
	}
	return newConversation(ctx, r, in, n, p, dir), nil
}

// A started is a program with its pipes.
type started struct {
	program
	stdin  io.Writer
	stdout io.Reader
}

func launch(s procgroup.Spec) (started, error) {
	p, err := procgroup.Start(s)
	if err != nil {
		return started{}, err
	}
	return started{p, p.Stdin, p.Stdout}, nil
}
