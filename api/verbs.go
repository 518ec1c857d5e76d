package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// LabelFolder is the label with the folder in which agents work that let a session choose
// one, see [tapedeck.Agent].
const LabelFolder = "folder"

// A NewSession asks for a session. An id that is taken is a [tapedeck.Conflict].
type NewSession struct {
	ID     string            `json:"id,omitempty"`     // 1 to 128 letters, digits and - _ . : @; without it the server generates one, "ses_" and 26 characters
	Title  string            `json:"title,omitempty"`  // people read it; at most 512 bytes
	Owner  string            `json:"owner,omitempty"`  // the user that it belongs to, at most 512 bytes; empty for nobody
	Agent  string            `json:"agent,omitempty"`  // the default agent of the session, for tasks that name no agent
	Labels map[string]string `json:"labels,omitempty"` // any names and values
	Budget *tapedeck.Amount  `json:"budget,omitempty"` // what its runs may use together before they ask people; without it there is no limit
	State  json.RawMessage   `json:"state,omitempty"`  // the shared state that every thread begins with, any JSON; null is the same as no state
	Actor  string            `json:"actor,omitempty"`  // the user, agent or program that creates the session, such as "user:ada", at most 512 bytes
}

// A Rename changes the title, the labels or the budget of a session. One of them must be given.
type Rename struct {
	Session      string             `json:"-"`
	Title        *string            `json:"title,omitempty"`         // the new title; absent: no change
	Labels       map[string]string  `json:"labels,omitzero"`         // replace all labels; absent: no change
	ChangeLabels map[string]*string `json:"change_labels,omitempty"` // these labels get a new value, or with null are removed; the others stay. Not together with labels
	Budget       *tapedeck.Amount   `json:"budget,omitempty"`        // what its runs may use together before they ask people, from its beginning on; an empty object removes the limit; absent: no change
	Actor        string             `json:"actor,omitempty"`         // the user, agent or program that renames the session
}

// A Close closes a session for ever. It is a [tapedeck.Conflict] while a run is
// open.
type Close struct {
	Session string `json:"-"`
	Actor   string `json:"actor,omitempty"` // the user, agent or program that closes the session
}

// A Task asks an agent to do something in a session. A thread with an open run is a
// [tapedeck.Conflict], unless When says what else to do.
type Task struct {
	Session string          `json:"-"`                // "" for a new session
	Create  bool            `json:"-"`                // create the session under that id if there is none
	Text    string          `json:"task"`             // the words of the user; not empty
	Agent   string          `json:"agent,omitempty"`  // the agent; by default that of the session, or the server's first if the session has none. It must be named if an outside program has written the newest run of the thread
	Thread  string          `json:"thread,omitempty"` // without it "main"
	Title   string          `json:"title,omitempty"`  // the title of a new session; an existing session keeps its title
	Config  json.RawMessage `json:"config,omitempty"` // an object that the agent's runner understands; null is the same as none
	Actor   string          `json:"actor,omitempty"`  // the user, agent or program that asks
	When    string          `json:"when,omitempty"`   // what to do while a run is open in the thread: now (the default: it is refused), queue, steer or interrupt

	Overwrite *Overwrite `json:"overwrite,omitempty"` // what the task replaces: the log gets the overwrite and the run, or neither. While a run is open in its threads, it is a [tapedeck.Conflict]. Its actor is that of the task

	Budget *tapedeck.Amount `json:"budget,omitempty"` // what the run may use before it asks people; a number that is missing is that of the agent. Only an admin may set more than the agent has

	// MessageID is the id of the user's message, at most 512 bytes. Without it the
	// server generates one. A task with the id and the text of an earlier one of
	// the session begins no run: the answer describes the run of that task. Another
	// text is a [tapedeck.Conflict].
	MessageID string `json:"message_id,omitempty"`

	// The members below are not part of the HTTP API. Other protocols have them.

	Capped     bool              `json:"-"` // refuse a budget with more than the agent has
	Queued     string            `json:"-"` // the id of the waiting input that the task is; only the engine sets it
	Owner      string            `json:"-"` // of a session that is created
	Invocation string            `json:"-"` // the id of the run; an id that the session has used is a [tapedeck.Conflict]; "" for a new one
	Messages   []payload.Message `json:"-"` // new messages of the client, appended instead of Text; the last one is the task if it is a user's
	State      json.RawMessage   `json:"-"` // the new shared state of the thread; nil if it did not change
	Input      *payload.RunInput `json:"-"` // what else the client gives to the agent; nil for nothing
	Rewind     *Rewind           `json:"-"` // of the thread, which the task replaces from there on: the log gets the rewind and the run, or neither. Its session, thread and actor are those of the task. nil for none
	Expect     *int64            `json:"-"` // the head of the session that the sender has seen; with another one the task is refused with [tapedeck.RefusedOffset]. nil for any
}

// Started reports the run that a [Task] or a [Resume] began, or the input that waits.
type Started struct {
	Session    string          `json:"session_id"`
	Invocation string          `json:"invocation_id"`      // of an input that waits: the run that it will be, unless the open run gets it
	Status     tapedeck.Status `json:"status"`             // running; waiting for an input that waits
	Offset     int64           `json:"offset"`             // the offset of the user's message, which is the first event of the invocation, or that of the event that queued the input: follow from here
	Marker     string          `json:"marker,omitempty"`   // of the overwrite; pass it to undo. Absent if it reverted nothing
	Repeated   bool            `json:"repeated,omitempty"` // the session had the message already, so nothing was started
	Input      string          `json:"input_id,omitempty"` // of an input: its id
	When       string          `json:"when,omitempty"`     // of an input: queue, steer or interrupt; queue if the agent cannot be steered
	Note       string          `json:"note,omitempty"`     // why When is not what the task asked for
}

// A Cancel stops a run. It is a [tapedeck.Conflict] if the run is not open, or if
// the request names no run and several are open.
type Cancel struct {
	Session    string `json:"-"`
	Invocation string `json:"invocation,omitempty"` // the run; without it the only open run
	All        bool   `json:"all,omitempty"`        // withdraw the inputs that wait in its thread, too, and all that wait if no run is open; otherwise the next one is run
}

// Cancelled reports what a [Cancel] did.
type Cancelled struct {
	Session    string          `json:"session_id"`
	Invocation string          `json:"invocation_id"`       // "" if no run was open and only inputs were withdrawn
	Status     tapedeck.Status `json:"status"`              // cancelled; without a run that of the session
	Offset     int64           `json:"offset"`              // the offset of the terminal event of the run; -1 without a run
	Resumable  bool            `json:"resumable"`           // the agent had begun, so the run can be resumed
	Withdrawn  int             `json:"withdrawn,omitempty"` // number of inputs that were withdrawn with it
}

// A Renewal says that the program which writes a run is alive. It is a
// [tapedeck.Conflict] if the run is not open, or if the server drives it.
type Renewal struct {
	Session    string `json:"-"`
	Invocation string `json:"invocation"`
}

// Renewed reports what a [Renewal] did.
type Renewed struct {
	Session    string `json:"session_id"`
	Invocation string `json:"invocation_id"`
	LeaseMS    int64  `json:"lease_ms"` // how long the program may be silent from now on, in milliseconds
}

// An Answer answers a permission that an agent asked for. It is a
// [tapedeck.Conflict] if the permission was answered before or ended with its run, a
// [tapedeck.NotFound] if the session has no such permission, and
// [tapedeck.Invalid] if the permission has no such option.
type Answer struct {
	Session    string           `json:"-"`
	Permission string           `json:"-"`                // its id
	Option     string           `json:"option"`           // the id of the chosen option
	Input      tapedeck.Members `json:"input,omitempty"`  // the values of its form, by the ids of the fields
	Offset     *int64           `json:"offset,omitempty"` // offset of the permission.requested that the user saw; if another permission now has that id, the answer is a [tapedeck.Conflict]; absent: whichever is pending
	Actor      string           `json:"actor,omitempty"`  // the user, agent or program that answers
	Grants     string           `json:"-"`                // the widest budget of which the sender may grant more: run, session or owner; "" for all
}

// Answered reports what an [Answer] did.
type Answered struct {
	Permission string `json:"permission"`
	Option     string `json:"option"`
	Offset     int64  `json:"offset"` // the offset of the permission.answered event
}

// A Resume asks the agent of a thread to continue the newest run of the thread,
// which was cancelled, was interrupted or failed. It is a [tapedeck.Conflict] if
// there is nothing to resume, and [tapedeck.Invalid] if the agent had not begun.
// Without a text it answers a message of the user that is the last one of the thread,
// if no run has got it.
type Resume struct {
	Session string           `json:"-"`
	Text    string           `json:"task,omitempty"`   // the words of the user; without it, the message that nobody has answered, otherwise "Continue where you left off."
	Agent   string           `json:"agent,omitempty"`  // the agent; by default that of the run, or that of the session if the run has none
	Thread  string           `json:"thread,omitempty"` // without it "main"
	Config  json.RawMessage  `json:"config,omitempty"` // see [Task]
	Actor   string           `json:"actor,omitempty"`  // the user, agent or program that asks
	Budget  *tapedeck.Amount `json:"budget,omitempty"` // see [Task]
	Capped  bool             `json:"-"`                // see [Task]

	Invocation string `json:"-"` // see [Task]
}

// A Rewind takes a session, or one thread of it, back to what it was before an
// event. Exactly one of BeforeInvocation and ToOffset must be given. A rewind that
// changes nothing is a [tapedeck.Conflict].
type Rewind struct {
	Session          string `json:"-"`
	BeforeInvocation string `json:"before_invocation_id,omitempty"` // the invocation to rewind to: its first event is the first that is reverted. A marker's id undoes that marker
	ToOffset         *int64 `json:"to_offset,omitempty"`            // the first offset that is reverted
	Thread           string `json:"thread,omitempty"`               // without it, all threads
	Force            bool   `json:"force,omitempty"`                // allow it to make reverted events active again
	IfIdle           bool   `json:"if_idle,omitempty"`              // a [tapedeck.Conflict] while a run is open in its threads; otherwise that run is cancelled
	Actor            string `json:"actor,omitempty"`                // the user, agent or program that rewinds
}

// An Undo reverts a rewind, a clear, an overwrite or an undo, and all events that
// came after it. It is a [tapedeck.Conflict] if there is nothing to undo.
type Undo struct {
	Session string `json:"-"`
	Marker  string `json:"marker,omitempty"` // the marker to undo; without it the newest one
	Actor   string `json:"actor,omitempty"`  // the user, agent or program that undoes it
}

// An Overwrite reverts the events from an offset on. The following events replace
// them.
type Overwrite struct {
	Session    string `json:"-"`
	FromOffset int64  `json:"from_offset"`      // the first offset that is reverted, at most the head
	Thread     string `json:"thread,omitempty"` // without it, all threads
	Force      bool   `json:"force,omitempty"`  // allow it to make reverted events active again
	Actor      string `json:"actor,omitempty"`  // the user, agent or program that overwrites

	Context  *view.ContextCut         `json:"context,omitempty"` // it cuts the log in the context of an agent
	Instance *payload.InstanceStarted `json:"-"`                 // an instance of the thread that stays although all of it is reverted
}

// A Clear reverts all events of a session, or of one thread. A clear that changes
// nothing is a [tapedeck.Conflict].
type Clear struct {
	Session string `json:"-"`
	Thread  string `json:"thread,omitempty"` // without it, all threads
	Actor   string `json:"actor,omitempty"`  // the user, agent or program that clears it

	AllowEmpty bool `json:"-"` // it is no error if there is nothing to clear
}

// Rewound reports what a [Rewind], [Undo], [Overwrite] or [Clear] did.
type Rewound struct {
	Session   string          `json:"session_id"`
	Marker    string          `json:"marker,omitempty"`    // undoes it; absent after an overwrite that changed nothing
	Offset    int64           `json:"offset"`              // the offset of the marker's event; -1 if there is none
	To        int64           `json:"to_offset"`           // the first offset that was reverted
	Thread    string          `json:"thread,omitempty"`    // the only thread that went back; absent for all threads
	Undoes    string          `json:"undoes,omitempty"`    // the marker that an undo undid; absent for other verbs
	Status    tapedeck.Status `json:"status"`              // the status of the session after it
	Cancelled []string        `json:"cancelled,omitempty"` // the runs that were cancelled first
}

// A Fork asks for a session that shares the events of another one. An id that is
// taken is a [tapedeck.Conflict].
type Fork struct {
	Parent string  `json:"-"`
	At     *int64  `json:"at,omitempty"`    // the first offset that is not shared; absent: all events are shared
	Title  *string `json:"title,omitempty"` // absent: that of the parent
	ID     string  `json:"id,omitempty"`    // the id of the fork; without it the server generates one
	Owner  string  `json:"owner,omitempty"` // without it, that of the parent
	Copy   bool    `json:"copy,omitempty"`  // an independent session, which is not shown as a branch of the parent
	Actor  string  `json:"actor,omitempty"` // the user, agent or program that forks

	Context *view.ContextCut `json:"context,omitempty"` // the fork cuts the log in the context of an agent

	WithoutLabels []string `json:"-"` // labels of the parent that the fork does not get
}

// An Erase removes the payloads of events for good. Their offsets, types and times
// stay. It is a [tapedeck.Conflict] if an open run began before the end of the last
// range.
type Erase struct {
	Session string                 `json:"-"`
	Events  []tapedeck.OffsetRange `json:"events,omitempty"` // the events to erase, at most 10,000 ranges; none with All
	All     bool                   `json:"all,omitempty"`    // all of the session's own events
	Reason  string                 `json:"reason,omitempty"` // the receipt has it; at most 512 bytes
	Actor   string                 `json:"actor,omitempty"`  // the user, agent or program that erases
}

// An Erased is the receipt of an [Erase].
type Erased struct {
	Session string                 `json:"session_id"`
	Receipt int64                  `json:"offset"` // the offset of the session.redacted that records it
	Events  int64                  `json:"events"` // the number of events that lost their payload
	Ranges  []tapedeck.OffsetRange `json:"ranges"`
	Forks   []string               `json:"forks,omitempty"` // sessions that shared some of the events, and have lost them too
}

// An ImportRequest describes the bytes of an import. On the wire its members are
// parameters.
type ImportRequest struct {
	Format string `json:"format,omitempty"` // ndjson, agui, asciicast, claude-code, openai-messages or auto; auto decides by the first line. Over HTTP the default is auto
	Title  string `json:"title,omitempty"`  // the title of the session; without it, one from the content
	Owner  string `json:"owner,omitempty"`  // the owner of the session
	Actor  string `json:"actor,omitempty"`  // the user, agent or program that imports

	WithoutLabels []string `json:"-"` // labels in the file that the sessions do not get

	// Creating is called before each session is created, and its result afterwards. Its error
	// ends the import, which then creates no session. Nil for nothing.
	Creating func(context.Context) (created func(), err error) `json:"-"`
}

// Imported reports what an import created.
type Imported struct {
	Sessions []string    `json:"sessions"`          // the ids of the new sessions, in the order of the input
	Events   int         `json:"events"`            // the number of events in all sessions
	Lines    int         `json:"lines"`             // the number of lines that were read
	Skipped  []LineError `json:"skipped,omitempty"` // the lines that were left out
}

// An ImportPreview reports what an import would create.
type ImportPreview struct {
	Format   string             `json:"format"`            // the given one, or the one that the first line shows
	Sessions []PreviewedSession `json:"sessions"`          // the sessions in the order of the input, at most the first 100
	Total    int                `json:"total"`             // the number of sessions, also those that Sessions leaves out
	Events   int                `json:"events"`            // the number of events in all sessions
	Lines    int                `json:"lines"`             // the number of lines that were read
	Skipped  []LineError        `json:"skipped,omitempty"` // the lines that would be left out
}

// A PreviewedSession is one that an import would create.
type PreviewedSession struct {
	ID      string     `json:"id,omitempty"`       // the id in the input, if it has one
	IDTaken bool       `json:"id_taken,omitempty"` // a session of that id exists, so the import would use another id
	Title   string     `json:"title,omitempty"`
	Events  int        `json:"events"`
	Threads []string   `json:"threads,omitempty"`  // at most the first 20
	First   *time.Time `json:"first_at,omitempty"` // the time of its first event, if that has one
	Last    *time.Time `json:"last_at,omitempty"`  // the time of its last event, if that has one
}

// A LineError says why a line of an import was left out.
type LineError struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// SendMessage sends a message to a workflow that runs.
type SendMessage struct {
	Session     string           `json:"-"`
	Thread      string           `json:"thread,omitempty"` // that of the workflow; absent: the only workflow that runs
	Name        string           `json:"name"`
	Correlation *string          `json:"correlation,omitempty"` // absent: every element that waits for the name fits; an empty text fits none, so it is refused
	Variables   tapedeck.Members `json:"variables,omitempty"`   // the element that receives it sets these variables
	Actor       string           `json:"actor,omitempty"`       // the user, agent or program that sends it
}

// Key returns the correlation, "" for none.
func (m *SendMessage) Key() string {
	if m.Correlation == nil {
		return ""
	}
	return *m.Correlation
}

// MessageSent reports what a [SendMessage] did.
type MessageSent struct {
	Invocation string `json:"invocation_id"` // the run of the workflow
	Offset     int64  `json:"offset"`        // the offset of the workflow.message event
}
