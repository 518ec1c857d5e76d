// Package workflow is a [tapedeck.Runner] that runs a BPMN diagram. Its tasks are done
// by other agents, each in a thread of its own, by users, and by expressions.
//
// The state of a run is a fold of its workflow.* events and nothing else; see
// [view.WorkflowFold]. The runner looks at the state, decides what happens next, yields
// that as one event, and folds it. So it continues after a restart of the server, after a
// resume and after a rewind in the same way: it folds what is in the log, and goes on.
package workflow

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// Defaults of [Options].
const (
	DefaultMaxTasks   = 16
	DefaultMaxEntries = 10_000
)

// Options of a workflow.
type Options struct {
	// XML is the diagram that runs if the task gives none, or Name is the name of a stored
	// one, of which the newest version runs. Without both, every task gives its own.
	// Process is the process of it that runs; "" if it has only one.
	XML     []byte
	Name    string
	Process string

	// Variables are the first variables; a task can give others. TaskVariable is the name
	// of the variable that gets the text of a task; "" for "task".
	Variables    map[string]json.RawMessage
	TaskVariable string

	// Agents are the agents of tasks, by the id or the type of the element; "*" is for
	// tasks that name none. A task can give others.
	Agents map[string]string

	// Lookup returns a stored diagram by its name and, if it is not "", its digest. Nil:
	// there are none.
	Lookup func(ctx context.Context, name, digest string) ([]byte, error)

	MaxTasks   int // how many agents work at once in one run; 0 for DefaultMaxTasks
	MaxEntries int // how often an element can be entered in one run; 0 for DefaultMaxEntries

	Now func() time.Time // nil for time.Now
}

// A Config is the part of a task that is for the workflow, see [tapedeck.Invocation.Config].
type Config struct {
	BPMN      string                     `json:"bpmn,omitempty"`      // the XML of the diagram
	Name      string                     `json:"name,omitempty"`      // the name of a stored diagram
	Digest    string                     `json:"digest,omitempty"`    // of the stored diagram; "" for its newest version
	Process   string                     `json:"process,omitempty"`   // the id of the process to run; "" if the diagram has only one
	Variables map[string]json.RawMessage `json:"variables,omitempty"` // the first variables
	Agents    map[string]string          `json:"agents,omitempty"`    // see [Options.Agents]
}

// A Runner runs diagrams. Several runs share it, and the diagrams that it has read.
type Runner struct {
	options     Options
	definitions definitions
	attached    []string // agents that there are; nil if that is not known
	own         own
	maxState    int
}

// New returns a runner. A diagram of its own that cannot run makes it unavailable.
func New(o Options) *Runner {
	if o.MaxTasks <= 0 {
		o.MaxTasks = DefaultMaxTasks
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runner{options: o, maxState: maxState}
}

// Capabilities says what a workflow can do.
func (r *Runner) Capabilities() tapedeck.Capabilities {
	return tapedeck.Capabilities{Permission: true, Interrupt: true, Resume: true, Exact: true}
}

// Durable says that the state of a run is in the log; see runner.Durable.
func (r *Runner) Durable() {}

// Run walks the diagram. In a host without a log it begins a process, and its tasks
// have no agents.
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		w := newWalker(r, ctx, &in, yield)
		err := w.restore()
		if err == nil {
			err = w.walk()
		}
		w.end(err)
	}
}

// digestPrefix begins the digest of a diagram in the log.
const digestPrefix = "sha256:"

func digestOf(d *bpmn.Definitions) string {
	return digestPrefix + strings.TrimPrefix(d.Digest, digestPrefix)
}

// keyOf returns the key of a diagram among those that were read: one file may have
// several processes.
func keyOf(digest, process string) string { return digest + " " + process }
