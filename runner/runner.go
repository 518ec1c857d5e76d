// Package runner defines optional interfaces of a [tapedeck.Runner]. With them a
// runner describes its abilities, the equipment of its agent and the system text of
// its model. The runners are in the folders below, and all of them pass the suite in
// runnertest.
package runner

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// Instructed is a runner whose model gets a system text. The engine stores the text
// in the log before the run that uses it; see [payload.NewPrompt].
type Instructed interface {
	tapedeck.Runner

	// Instructions returns the system text of a run with this config. "" means that the
	// run has no system text.
	Instructions(config json.RawMessage) (string, error)
}

// Equipment is the model, tools and skills of an agent for one invocation, as far as
// they are known before it begins.
type Equipment struct {
	Model  string
	Tools  []string
	Skills []string
}

// Equipped is a runner that knows the equipment of its agent.
type Equipped interface {
	tapedeck.Runner
	Equipment(in tapedeck.Invocation) Equipment
}

// Capable is a runner that reports its capabilities, and whether it can run here.
type Capable interface {
	tapedeck.Runner
	Capabilities() tapedeck.Capabilities

	// Available returns nil if the agent can run here. Otherwise the error says why
	// not; for example, its program is not installed. Available is quick and starts
	// no process.
	Available() error
}

// TaskAfterHistory returns the task for an agent that already received the history of
// in: the task without the part of the context that the history has, too.
func TaskAfterHistory(in *tapedeck.Invocation) string {
	if in.Unheard == "" {
		return in.Task
	}
	return strings.Replace(in.Task, in.Unheard, "", 1)
}

// Reattaching is a runner whose agent works outside of the server and does not end with
// it. After a crash of the server, the engine runs it again for a run that is open, with
// [tapedeck.Invocation.Begun].
type Reattaching interface {
	Capable
	Reattaches() // a marker: it does nothing
}
