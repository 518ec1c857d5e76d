package tapedeck

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
)

// A Runner makes one kind of agent run. It knows no log and no offsets: it
// yields what the agent does, and the engine writes it down. The suite in
// runner/runnertest is its contract in full.
type Runner interface {
	// Run runs the agent for one invocation and yields its events: type and
	// data, and a turn where the agent has one. The engine adds the rest, and
	// writes RUN_STARTED, RUN_FINISHED and RUN_ERROR itself. An error ends the
	// run as failed; its text is shown to users only if it is an [*Error].
	//
	// When ctx is done the runner stops the agent, yields what it still has to
	// say, and returns. A runner yields slowly if its events are taken slowly:
	// it holds the agent back and drops nothing.
	Run(ctx context.Context, in Invocation) iter.Seq2[Event, error]
}

// RunnerFunc makes a function a [Runner].
type RunnerFunc func(ctx context.Context, in Invocation) iter.Seq2[Event, error]

// Run calls f.
func (f RunnerFunc) Run(ctx context.Context, in Invocation) iter.Seq2[Event, error] {
	return f(ctx, in)
}

// An Invocation is one request to an agent.
type Invocation struct {
	ID      string
	Session string
	Thread  string
	Task    string          // what the user asks for; after a run that was cut short, with Context before it
	Config  json.RawMessage // what the runner understands; nil for none
	Resumes string          // the invocation that this one goes on with, because it was cut short; "" for none
	Context string          // what the agent is told of how that one ended; "" for nothing
	Unheard string          // the part of Context that History has, too; see [Invocation.TaskAfterHistory]

	// Folder is where the agent works: files and commands of its are there. ""
	// if it has none.
	Folder string

	// Link is the runner's own conversation of this thread, as an earlier
	// invocation has told it by [AgentLinked], if that has all that is in force
	// and nothing that was taken back. Nil: the runner begins a new one, and
	// tells the agent what History has, as far as it can.
	Link *Link

	// Ask asks people whether the agent may do something, and waits for the
	// answer. When ctx is done, the answer is that nobody chose. It is called
	// between the events that come before and after the question; several may
	// be open at once. Nil in a host that cannot ask: then nothing that needs
	// asking is allowed.
	Ask func(ctx context.Context, q Question) (Choice, error)

	// Stored waits until everything that was yielded is durable. It is called
	// between events, before something begins that a later server must know of.
	// Nil in a host that keeps nothing.
	Stored func(ctx context.Context) error

	// Delegate starts another agent, one of Delegates, as a sub-agent with a thread
	// of its own, and waits for its end. It is called between the events that come
	// before and after, such as those of a tool call. When ctx is done the other
	// agent is stopped, too. Nil if the agent may start none.
	Delegate  func(ctx context.Context, d Delegation) (Delegated, error)
	Delegates []Agent

	// History returns the events before this invocation that are in force: none
	// that a rewind has taken back. It may end in the middle of a message, if a
	// rewind went there.
	History func(ctx context.Context) iter.Seq2[Event, error]
}

// TaskAfterHistory returns the task for an agent that is told History before it:
// without what that has already.
func (in *Invocation) TaskAfterHistory() string {
	if in.Unheard == "" {
		return in.Task
	}
	return strings.Replace(in.Task, in.Unheard, "", 1)
}

// A Delegation is what an agent asks another to do.
type Delegation struct {
	Agent      string
	Task       string
	ToolCallID string // the call that leads to it; "" for none
}

// Delegated is what has come of a [Delegation].
type Delegated struct {
	Thread string
	Status Status // of its run, which has ended
	Text   string // what it said last
}

// A Link names a conversation in words of the runner that keeps it.
type Link struct {
	Runner   string // the kind of the runner, and what else tells it from others
	NativeID string
	Offset   int64 // of the [AgentLinked] that said so
}

// An Agent is one that tasks can go to.
type Agent struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"` // of its runner
	Description string `json:"description,omitempty"`

	Capabilities *Capabilities `json:"capabilities,omitempty"` // nil if the runner does not tell
	Unavailable  string        `json:"unavailable,omitempty"`  // why it cannot run here; "" if it can
}

// Capabilities say what a runner can do beyond running.
type Capabilities struct {
	Deltas     bool `json:"deltas"`     // text comes as it is made
	Thinking   bool `json:"thinking"`   // so does what the agent thinks
	Tools      bool `json:"tools"`      // its tool calls are seen
	Plan       bool `json:"plan"`       // its plan is
	Permission bool `json:"permission"` // it asks before it does what needs asking
	Interrupt  bool `json:"interrupt"`  // it can be stopped in the middle, and goes on from there
	Resume     bool `json:"resume"`     // it can go on with a conversation of its own after it was killed
	Exact      bool `json:"exact"`      // its memory is the log, so that rewind and fork need no conversation of its own
}
