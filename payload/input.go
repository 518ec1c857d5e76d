package payload

import "encoding/json"

// These are the types of the events of inputs, which only the engine appends. Like all
// events of [tapedeck.ChannelSession], no jump reverts them: an input that was run
// stays run.
//
// [tapedeck.ChannelSession]: https://pkg.go.dev/github.com/tapedeck/tapedeck#ChannelSession
const (
	TypeInputQueued    = "input.queued"
	TypeInputMoved     = "input.moved"
	TypeInputSteered   = "input.steered"
	TypeInputStarted   = "input.started"
	TypeInputWithdrawn = "input.withdrawn"
)

// InputQueued says that an input waits in its thread.
type InputQueued struct {
	ID         string          `json:"id" shape:"id"`
	Text       string          `json:"text"`                            // the words of the user
	When       string          `json:"when,omitempty"`                  // "queue": it runs after the open run; "steer": the open run gets it if it can; "interrupt": the open run is cancelled for it; "" means queue
	Invocation string          `json:"invocation,omitempty" shape:"id"` // of the run that it will be, unless it is given to the open run
	Before     string          `json:"before,omitempty" shape:"id"`     // the input before which it is placed; "" for the end of the queue
	MessageID  string          `json:"messageId,omitempty"`             // the id that its message will have; "" for a generated one
	Agent      string          `json:"agent,omitempty"`                 // the agent; "" for that of the session, or for an outside program without a name
	Outside    bool            `json:"outside,omitempty"`               // the outside program that wrote the open run takes it; no server runs it
	Config     json.RawMessage `json:"config,omitempty" shape:"some"`   // for the agent's runner; nil if none
	Budget     json.RawMessage `json:"budget,omitempty" shape:"object"` // what its run may use, as in the request; nil for the budget of the agent
	Common
}

// InputMoved places a waiting input before another one.
type InputMoved struct {
	ID     string `json:"id" shape:"id"`
	Before string `json:"before,omitempty" shape:"id"` // "" for the end of the queue
	Common
}

// InputSteered says that the open run got an input. The message follows it.
type InputSteered struct {
	ID         string `json:"id" shape:"id"`
	Invocation string `json:"invocation,omitempty" shape:"id"` // of the run
	Common
}

// InputStarted says that an input became a run. The events that begin the run follow it.
type InputStarted struct {
	ID         string `json:"id" shape:"id"`
	Invocation string `json:"invocation,omitempty" shape:"id"` // of the run
	Common
}

// InputWithdrawn says that an input does not wait any more and was not run.
type InputWithdrawn struct {
	ID     string `json:"id" shape:"id"`
	Reason string `json:"reason,omitempty"` // for people; "" if a user withdrew it
	Common
}
