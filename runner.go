package tapedeck

import (
	"context"
	"encoding/json"
	"iter"
)

// A Runner runs one kind of agent. It knows no log and no offsets: it yields
// what the agent does, and the engine appends it. The suite in
// runner/runnertest is the full contract.
type Runner interface {
	// Run runs the agent for one invocation and yields its events: type and
	// data, and the turn if the agent has turns. The engine sets the rest, and
	// writes RUN_STARTED, RUN_FINISHED and RUN_ERROR itself. An error ends the
	// run as failed; users see its text only if it is an [*Error].
	//
	// When ctx is done, the runner stops the agent, yields its last events, and
	// returns. If the consumer is slow, the runner holds the agent back; it
	// never drops events.
	Run(ctx context.Context, in Invocation) iter.Seq2[Event, error]
}

// A RunnerFunc is a function that implements [Runner].
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
	Task    string          // the user's request, after Context if there is one
	Message json.RawMessage // the message of the task in the log, as an AG-UI message, with its id and its attachments; nil if there is none, as after the answer of a tool in a front end
	Config  json.RawMessage // for the runner; nil if none
	Input   json.RawMessage // what an AG-UI client sent beside its messages: tools, context, state, forwardedProps, resume; nil if none
	Resumes string          // the cancelled, interrupted or failed invocation that this one resumes; "" if none
	Context string          // what the agent is told about how that invocation ended; "" if nothing

	// Unheard is the part of Context that repeats events of the log. The agent's
	// own conversation may lack them, but History has them.
	Unheard string

	// Folder is the agent's working folder, for its files and commands. It may
	// be "".
	Folder string

	// Link is the runner's own conversation of this thread, as an earlier
	// invocation reported it with [AgentLinked]. It is nil unless that
	// conversation has exactly the active events: all of them and no reverted
	// ones. If Link is nil, the runner begins a new conversation and gives the
	// agent the History, as far as it can.
	Link *Link

	// Ask asks the user for a permission and waits for the answer. When ctx is
	// done, it answers that no option was chosen. Call it between the events
	// before and after the question. Several questions may be pending at once.
	// Ask is nil in a host that cannot ask: then the agent must not do what
	// needs permission.
	Ask func(ctx context.Context, q Question) (Choice, error)

	// Steer returns the messages, in the form of Message, that users have sent to this
	// run since it began and that it has not got yet. They are in the log then. Call it
	// between two calls of the model, and once more after its last answer; if there are
	// messages, the agent continues with them. It is nil in a host without a queue. Only
	// a runner whose [Capabilities] have Steer gets any.
	Steer func(ctx context.Context) ([]json.RawMessage, error)

	// Steered receives when there may be something to get with Steer. It is for a runner
	// whose agent takes input at any time. It is nil where Steer is nil.
	Steered <-chan struct{}

	// Proceed waits while people are asked whether the run may use more than its budget.
	// Call it before each call of the model. An error ends the run. It is nil in a host
	// without budgets.
	Proceed func(ctx context.Context) error

	// Stored waits until all events that were yielded are durable. Call it
	// between events, before an action that a restarted server must know about.
	// It is nil in a host without a log.
	Stored func(ctx context.Context) error

	// Delegate starts another agent, one of Delegates, as a sub-agent in a
	// thread of its own, and waits for its end. Call it between events, such as
	// those of a tool call. When ctx is done, the sub-agent is stopped, too.
	// Delegate is nil if the agent must not start others.
	Delegate  func(ctx context.Context, d Delegation) (Delegated, error)
	Delegates []Agent

	// Begun yields the events of this invocation that are in the log already. For a
	// runner.Reattaching: an earlier process of the server died while the agent, which
	// works elsewhere, was running. The runner continues to listen to the agent and
	// yields what the log does not have. All messages and calls are closed; their ids
	// open them again. For a runner.Durable, Begun is never nil, and an invocation that
	// begins has its opening. It is nil for an invocation of any other runner, and for
	// one of a runner.Reattaching that begins.
	Begun func(ctx context.Context) iter.Seq2[Event, error]

	// Inbox has what others send to the invocation while it runs. It is nil in a host
	// without a log, and for every runner that is not a runner.Durable.
	Inbox *Inbox

	// History returns the active events before this invocation: no rewind has
	// reverted them. It may end in the middle of a message, if a rewind went
	// there.
	History func(ctx context.Context) iter.Seq2[Event, error]
}

// An Inbox has events that others append for an invocation: each workflow.message, and
// each permission.answered to a question that the runner yielded itself. They are in
// the log when they are in the inbox.
type Inbox struct {
	Ready <-chan struct{} // receives when there is something to take
	Take  func() []Event  // removes what is in it and returns that, in the order of the log

	// Rests says that the runner waits for people, messages or a time, and that nothing
	// works that it has started. A run that the server continues after a crash is not
	// suspected of that crash any more then. Nil: nobody wants to know.
	Rests func()
}

// A Delegation is the task that an agent gives to another one.
type Delegation struct {
	Agent      string
	Task       string
	Config     json.RawMessage // for the runner of that agent; nil if none
	ToolCallID string          // the tool call that starts it; "" if none

	// Thread names the thread of the sub-agent, "" for a new one. A delegation with a
	// name happens once: if the thread has a run that is complete or has failed, its
	// outcome is that of this one, and if it has one that was stopped, its task begins
	// again, with the prompt that the log has.
	Thread string

	// Since is the offset before which nothing on the named thread belongs to this
	// delegation.
	Since int64
}

// A Delegated is the outcome of a [Delegation].
type Delegated struct {
	Thread string
	Status Status // of its run, which has ended
	Text   string // the sub-agent's last message; at most 256 KiB, with a named thread 1 MiB and one byte

	Message    string // why it failed, for people; "" if it did not
	Invocation string // its run
}

// A Link identifies a conversation by the id that its runner uses.
type Link struct {
	Runner   string // the runner's kind and what distinguishes it from other runners of that kind
	NativeID string
	Offset   int64 // of the [AgentLinked] that reported it
}

// An Agent is an agent that can get tasks.
type Agent struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"` // of its runner
	Description string `json:"description,omitempty"`

	Models  []string `json:"models,omitempty"`  // what a task may choose with the member "model" of its config, the default first; none if there is no choice
	Folders []string `json:"folders,omitempty"` // what a session may choose with its label "folder"; none if there is no choice

	Capabilities *Capabilities `json:"capabilities,omitempty"` // nil if the runner does not report them
	Unavailable  string        `json:"unavailable,omitempty"`  // why it cannot run here; "" if it can
}

// Capabilities say what a runner supports.
type Capabilities struct {
	Deltas     bool `json:"deltas"`     // text is streamed
	Thinking   bool `json:"thinking"`   // reasoning is streamed
	Tools      bool `json:"tools"`      // tool calls are visible
	Plan       bool `json:"plan"`       // the plan is visible
	Permission bool `json:"permission"` // the agent asks for permission
	Interrupt  bool `json:"interrupt"`  // it can be stopped in the middle and resumed there
	Resume     bool `json:"resume"`     // it can resume its own conversation after it was killed
	Steer      bool `json:"steer"`      // it takes messages of users while it runs
	Exact      bool `json:"exact"`      // the log is its only memory, so it needs no conversation of its own after a rewind or fork
}
