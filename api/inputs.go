package api

import (
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// These are the values of [Task.When]: what becomes of a task for a thread that has an
// open run. A thread without one, in which no input waits, begins the run at once.
const (
	WhenNow       = "now"       // it is refused with a [tapedeck.Conflict]
	WhenQueue     = "queue"     // it waits, and is run after the open run and the inputs that wait already
	WhenSteer     = "steer"     // the open run gets it between two calls of its model; if the agent takes none before its end, it is run next, as with queue
	WhenInterrupt = "interrupt" // the open run is cancelled, and this task is run before all inputs that wait
)

// Whens are the values of [Task.When].
var Whens = []string{WhenNow, WhenQueue, WhenSteer, WhenInterrupt}

// Inputs are the inputs of a session, or of one of its threads.
type Inputs struct {
	Inputs []view.Input `json:"inputs"` // those that wait, in the order in which they will run, and the newest of those that have ended
}

// A Withdraw withdraws an input that waits. It is a [tapedeck.Conflict] if the input
// does not wait any more, and [tapedeck.NotFound] if the session has no such input.
type Withdraw struct {
	Session string `json:"-"`
	Input   string `json:"-"`
	Actor   string `json:"-"` // the user, agent or program that withdraws it
}

// A Move changes the place of an input that waits. Errors are those of a [Withdraw]; it
// is [tapedeck.Invalid] if the other input does not wait in the same thread.
type Move struct {
	Session string `json:"-"`
	Input   string `json:"-"`
	Before  string `json:"before,omitempty"` // the input that will run after it; without it, it runs last
	Actor   string `json:"actor,omitempty"`  // the user, agent or program that moves it
}

// A Take gives an input that waits for an outside program to the open run of that program.
// Errors are those of a [Withdraw]; it is also a [tapedeck.Conflict] if the input is for an
// agent of the server, or if the run is not the open one of the thread. The same Take again
// has the same answer.
type Take struct {
	Session    string `json:"-"`
	Input      string `json:"-"`
	Invocation string `json:"invocation"` // the run that gets it, which the program writes
}

// Taken reports an input that a [Take] gave to a run.
type Taken struct {
	Input      string          `json:"input_id"`
	Invocation string          `json:"invocation_id"`
	Offset     int64           `json:"offset"`             // of the event of the message, which the server has appended
	Message    payload.Message `json:"message"`            // the user's words
	Repeated   bool            `json:"repeated,omitempty"` // the run had it already
}
