package tapedeck

import "encoding/json"

// These are what doors say to the engine and hear from it.

// NewSession asks for a session.
type NewSession struct {
	ID     string            // "" for a new one, "ses_" and 26 characters
	Title  string            // for people; may be empty
	Owner  string            // whose it is; "" for nobody's
	Agent  string            // the agent that its tasks go to unless they name one
	Labels map[string]string // free
	State  json.RawMessage   // initial shared state, any JSON; nil for none
	Actor  string            // who creates it
}

// A Rename changes what people see of a session.
type Rename struct {
	Session string
	Title   *string           // nil leaves it
	Labels  map[string]string // replace all labels; nil leaves them
	Actor   string            // who does it
}

// A Task asks an agent to do something in a session.
type Task struct {
	Session string          // "" for a new one
	Title   string          // of a new session
	Thread  string          // "" for [MainThread]
	Agent   string          // "" for the session's, else the server's first
	Text    string          // what the user says; not empty
	Config  json.RawMessage // what the agent's runner understands; nil for none
	Actor   string          // who asks
}

// Started says what a task began.
type Started struct {
	Session    string
	Invocation string
	Offset     int64 // of the first event of the invocation, the user's message
}

// Cancelled says what a cancel did.
type Cancelled struct {
	Invocation string
	Offset     int64 // of its terminal event
	Resumable  bool  // the agent had started, so it can go on from there
}

// An Agent is one that tasks can go to.
type Agent struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"` // of its runner
	Description string `json:"description,omitempty"`
}

// An ImportRequest says what the bytes of an import are.
type ImportRequest struct {
	Format string // see the engine for those it knows
	Title  string // of the session; "" for one taken from the content
	Owner  string
	Actor  string
}

// Imported says what an import made.
type Imported struct {
	Sessions []string    `json:"sessions"` // ids, in order of the input
	Events   int         `json:"events"`   // in all of them
	Lines    int         `json:"lines"`    // read
	Skipped  []LineError `json:"skipped,omitempty"`
}

// A LineError says why a line of an import was left out.
type LineError struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}
