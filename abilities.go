package tapedeck

import "encoding/json"

// An Instructed is a runner whose model gets a system text. The engine stores the
// text in the log before the run that uses it; see [payload.NewPrompt].
type Instructed interface {
	Runner

	// Instructions returns the system text of a run with this config, "" for none.
	Instructions(config json.RawMessage) (string, error)
}

// Equipment is what an agent has for an invocation, as far as that is known before
// it begins.
type Equipment struct {
	Model  string
	Tools  []string
	Skills []string
}

// An Equipped is a runner that knows its agent's equipment.
type Equipped interface {
	Runner
	Equipment(in Invocation) Equipment
}

// A Capable is a runner that says what it can do, and whether it can run here.
type Capable interface {
	Runner
	Capabilities() Capabilities

	// Available reports why the agent cannot run here, such as a program that is
	// not installed; nil if it can. It is quick and starts nothing.
	Available() error
}
