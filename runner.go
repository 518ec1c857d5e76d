package tapedeck

import (
	"context"
	"encoding/json"
	"iter"
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

// An Invocation is one request to an agent.
type Invocation struct {
	ID      string
	Session string
	Thread  string
	Task    string          // what the user asks for
	Config  json.RawMessage // what the runner understands; nil for none

	// History returns the session's events before this invocation.
	History func(ctx context.Context) iter.Seq2[Event, error]
}
