// Package runner has what a [tapedeck.Runner] may tell about itself beyond running:
// its abilities, its equipment, and the system text of its model. The runners are in
// the folders below it, and runnertest is the suite that all of them pass.
package runner

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// An Instructed is a runner whose model gets a system text. The engine stores the
// text in the log before the run that uses it; see [payload.NewPrompt].
type Instructed interface {
	tapedeck.Runner

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
	tapedeck.Runner
	Equipment(in tapedeck.Invocation) Equipment
}

// A Capable is a runner that says what it can do, and whether it can run here.
type Capable interface {
	tapedeck.Runner
	Capabilities() tapedeck.Capabilities

	// Available reports why the agent cannot run here, such as a program that is
	// not installed; nil if it can. It is quick and starts nothing.
	Available() error
}
