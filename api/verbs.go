// Package api has the requests and answers of the verbs, such as rewind and fork.
// The engine, the HTTP API, the client and the command line share them.
package api

import (
	"encoding/json"
	"time"

	"github.com/tapedeck/tapedeck"
)

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
	Thread  string          // "" for [tapedeck.MainThread]
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

// An Answer answers what an agent has asked people.
type Answer struct {
	Session    string
	Permission string // its id
	Option     string // the id of the option that is chosen
	Offset     *int64 // of the question that was shown; nil for the one that is open under the id
	Actor      string // who answers
}

// Answered says what an [Answer] did.
type Answered struct {
	Permission string `json:"permission"`
	Option     string `json:"option"`
	Offset     int64  `json:"offset"` // of the event that says so
}

// A Resume asks the agent of a thread to go on where a run stopped before its
// end: it was cancelled, interrupted or has failed.
type Resume struct {
	Session string
	Agent   string          // "" for the agent of the run
	Thread  string          // "" for [tapedeck.MainThread]
	Text    string          // what the user says; "" for a request to continue
	Config  json.RawMessage // see [Task]
	Actor   string
}

// A Rewind takes a session, or one thread of it, back to what it was before an
// event. One of BeforeInvocation and ToOffset says which.
type Rewind struct {
	Session          string
	BeforeInvocation string // the first event of this invocation; or a marker, which undoes what it marks
	ToOffset         *int64 // the event at this offset, the first that is taken back
	Thread           string // "" for all threads
	Force            bool   // even if that makes reverted events active again, which only an undo does otherwise
	Actor            string
}

// An Undo takes back a rewind, a clear or an overwrite, and all that came after
// it.
type Undo struct {
	Session string
	Marker  string // "" for the newest
	Actor   string
}

// An Overwrite says that what follows takes the place of the events from an
// offset on.
type Overwrite struct {
	Session    string
	FromOffset int64
	Thread     string // "" for all threads
	Force      bool   // as in [Rewind]
	Actor      string
}

// A Clear takes everything in a session, or in one thread, back.
type Clear struct {
	Session string
	Thread  string // "" for all threads
	Actor   string
}

// Rewound says what a [Rewind], [Undo], [Overwrite] or [Clear] did.
type Rewound struct {
	Session   string          `json:"session_id"`
	Marker    string          `json:"marker,omitempty"`    // with which it can be undone; "" if there was nothing to take back
	Offset    int64           `json:"offset"`              // of its event; -1 if there is none
	To        int64           `json:"to_offset"`           // the first offset that was taken back
	Thread    string          `json:"thread,omitempty"`    // "" for all
	Undoes    string          `json:"undoes,omitempty"`    // of an undo: the marker of what it has taken back
	Status    tapedeck.Status `json:"status"`              // of the session by it
	Cancelled []string        `json:"cancelled,omitempty"` // the runs that were cancelled first
}

// A Fork asks for a session that shares the events of another one.
type Fork struct {
	Parent string
	ID     string  // "" for a new one
	At     *int64  // shares those below this offset; nil for all
	Title  *string // nil for the parent's
	Owner  string  // "" for the parent's
	Copy   bool    // it stands for itself, and is shown as a copy, not as a branch of Parent
	Actor  string
}

// An Erase removes the payloads of events for good. Their offsets, types and
// times stay.
type Erase struct {
	Session string
	Events  []tapedeck.OffsetRange // which; with All, none
	All     bool                   // all that the session has of its own
	Reason  string                 // for the receipt; may be empty
	Actor   string
}

// An Erased is the receipt of an [Erase].
type Erased struct {
	Session string                 `json:"session_id"`
	Receipt int64                  `json:"offset"` // of the session.redacted that says so
	Events  int64                  `json:"events"` // whose payload is gone
	Ranges  []tapedeck.OffsetRange `json:"ranges"`
	Forks   []string               `json:"forks,omitempty"` // sessions that had shared some of them, and have them no more
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

// An ImportPreview says what an import would make.
type ImportPreview struct {
	Format   string             `json:"format"`            // also if it was told by the first line
	Sessions []PreviewedSession `json:"sessions"`          // in order of the input, at most the first 100
	Total    int                `json:"total"`             // how many there are
	Events   int                `json:"events"`            // in all of them
	Lines    int                `json:"lines"`             // read
	Skipped  []LineError        `json:"skipped,omitempty"` // that would be left out
}

// A PreviewedSession is one that an import would make.
type PreviewedSession struct {
	ID      string     `json:"id,omitempty"`       // that it has in the input, if it has one
	IDTaken bool       `json:"id_taken,omitempty"` // there is such a session already, so it would get another
	Title   string     `json:"title,omitempty"`
	Events  int        `json:"events"`
	Threads []string   `json:"threads,omitempty"`  // at most the first 20
	First   *time.Time `json:"first_at,omitempty"` // of its events, as far as they have times
	Last    *time.Time `json:"last_at,omitempty"`
}

// A LineError says why a line of an import was left out.
type LineError struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// A PresenceAction is what somebody does with regard to being there.
type PresenceAction string

// The actions.
const (
	PresenceJoin  PresenceAction = "join"  // they come; who is there already has moved
	PresenceMove  PresenceAction = "move"  // they look elsewhere, or are still there
	PresenceLeave PresenceAction = "leave" // they go
)

// PresenceLabel is the label of a session that asks for presence to be stored:
// then what people do is also appended, as presence.* events. Its value is
// [PresenceStored].
const (
	PresenceLabel  = "presence"
	PresenceStored = "stored"
)

// A PresenceNote says where somebody is. Who says nothing for a minute has left.
type PresenceNote struct {
	Session string
	Action  PresenceAction
	User    string          // an id, see [tapedeck.CheckID]
	Cursor  json.RawMessage // where they look, in words of the front end; nil leaves it
}

// A PresenceWatcher tells who comes, moves and goes while somebody watches.
type PresenceWatcher interface {
	Changed() <-chan struct{}  // receives when there are changes
	Changes() []tapedeck.Event // presence.* events without an offset since the last call; at first, who is there
	Stop()
}
