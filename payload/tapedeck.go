package payload

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// MessageAddedData is a whole message that no model streamed. A message of an id
// that is among the newest 128 of its thread takes the place of that one.
type MessageAdded struct {
	Message Message `json:"message"`
	Common
}

// PermissionRequestedData asks a person whether the agent may continue.
type PermissionRequested struct {
	tapedeck.Question
	Common
}

// PermissionAnsweredData answers a request.
type PermissionAnswered struct {
	tapedeck.Choice
	Common
}

// InstanceStartedData says that an agent takes part in the session.
type InstanceStarted struct {
	ID     string `json:"id" shape:"id"`
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"` // the instance that started it
	Common
}

// PlanUpdatedData replaces the plan of the thread.
type PlanUpdated struct {
	Entries []PlanEntry `json:"entries"`
	Attributed
}

// A PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string           `json:"content"`
	Status   string           `json:"status"`             // "pending", "in_progress" or "completed"
	Priority string           `json:"priority,omitempty"` // "high", "medium" or "low"
	Extra    tapedeck.Members `json:"-"`
}

// AgentLinkedData tells the runner's own id of the conversation.
type AgentLinked struct {
	Runner   string `json:"runner"`
	NativeID string `json:"nativeId"` // with which the runner can resume it
	Common
}

// AgentStartedData tells which process the agent is, so that a server that was
// restarted can end what an earlier one has left running.
type AgentStarted struct {
	PID     int    `json:"pid"`            // of the process above all others of the agent
	Started string `json:"started"`        // what the system says of when it began: another process of that id began at another time
	Host    string `json:"host"`           // the machine, and its current life: no process outlives that
	Mark    string `json:"mark,omitempty"` // what every process of the agent has in its environment
	Common
}

// UsageReportedData is what one model call used. The usage of a run is in its
// terminal event.
type UsageReported struct {
	TokenCounts
	CostUSD *float64 `json:"costUsd,omitempty"` // nil if not known
	Attributed
}

// WorkflowStartedData begins a process.
type WorkflowStarted struct {
	Process string `json:"process,omitempty"` // its id in the definition
	Name    string `json:"name,omitempty"`
	Digest  string `json:"digest"` // of the XML of its definition: "sha256:" and hexadecimal digits
	Common
}

// WorkflowElement names an element of a process.
type WorkflowElement struct {
	Element string `json:"element" shape:"id"` // its id in the definition
	Name    string `json:"name,omitempty"`
}

// WorkflowEnteredData says that a token has reached an element.
type WorkflowEntered struct {
	WorkflowElement
	Common
}

// WorkflowLeftData says that an element is done.
type WorkflowLeft struct {
	WorkflowElement
	Flows []string `json:"flows,omitempty"` // the sequence flows that were taken
	Common
}

// WorkflowFailedData says that an element has failed.
type WorkflowFailed struct {
	WorkflowElement
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	Common
}

// WorkflowVariablesData sets variables of the process, and leaves all others.
type WorkflowVariables struct {
	Variables tapedeck.Members `json:"variables"`
	Common
}

// WorkflowEndedData ends a process.
type WorkflowEnded struct {
	Outcome string `json:"outcome,omitempty"` // "completed", "failed" or "cancelled"; "" for completed
	Message string `json:"message,omitempty"`
	Common
}

// TerminalOutputData is what a terminal showed.
type TerminalOutput struct {
	Terminal string `json:"terminal" shape:"id"`
	Data     string `json:"data"` // text with its control sequences
	Cuts     []Cut  `json:"cuts,omitempty"`
	Common
}

// TerminalInputData is what was typed into a terminal.
type TerminalInput struct {
	Terminal string `json:"terminal" shape:"id"`
	Data     string `json:"data"`
	Common
}

// TerminalResizeData says how large a terminal is from now on.
type TerminalResize struct {
	Terminal string `json:"terminal" shape:"id"`
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
	Common
}

// TerminalExitData says that the process of a terminal has ended.
type TerminalExit struct {
	Terminal string `json:"terminal" shape:"id"`
	Code     *int   `json:"code,omitempty"`   // nil if a signal ended it
	Signal   string `json:"signal,omitempty"` // such as "SIGKILL"
	Common
}

// Presence is where somebody is in the session.
type Presence struct {
	User     string          `json:"user" shape:"id"`
	Cursor   json.RawMessage `json:"cursor,omitempty"`   // where they look, in words of the front end
	JoinedAt string          `json:"joinedAt,omitempty"` // a time of RFC 3339
	LastSeen string          `json:"lastSeen,omitempty"` // likewise
}

// PresenceJoinedData says that somebody has come.
type PresenceJoined struct {
	Presence
	Common
}

// PresenceLeftData says that somebody has gone.
type PresenceLeft struct {
	Presence
	Common
}

// PresenceMovedData says that somebody looks elsewhere.
type PresenceMoved struct {
	Presence
	Common
}

// SessionCreatedData is the first event of a session.
type SessionCreated struct {
	Title  string          `json:"title,omitempty"`
	Owner  string          `json:"owner,omitempty"`
	Agent  string          `json:"agent,omitempty"`
	Labels tapedeck.Labels `json:"labels,omitempty"`
	State  json.RawMessage `json:"state,omitempty"` // initial shared state, any JSON
	Common
}

// SessionRenamedData changes what people call a session.
type SessionRenamed struct {
	Title  *string         `json:"title,omitempty"`  // nil leaves it
	Labels tapedeck.Labels `json:"labels,omitempty"` // nil leaves them, others replace all
	Common
}

// A Taking has the members of the events that take others back; see [tapedeck.Jump].
type Taking struct {
	Marker    string   `json:"marker" shape:"id"`  // its own id, with which it can be undone
	Thread    string   `json:"thread,omitempty"`   // the only one that goes back; "" for all
	With      []string `json:"with,omitempty"`     // threads that go back with it: those of the sub-agents that were started there
	Previous  *int64   `json:"previous,omitempty"` // offset of the event before it that takes others back; nil for none
	Status    string   `json:"status,omitempty"`   // the session's by it, see [tapedeck.Status]; "" leaves it
	Resumable *bool    `json:"resumable,omitempty"`
}

// SessionRewoundData takes the session, or a thread, back to what it was before
// an event. It deletes nothing.
type SessionRewound struct {
	Taking
	ToOffset         int64  `json:"toOffset"`                   // the first offset that is taken back
	BeforeInvocation string `json:"beforeInvocation,omitempty"` // the invocation whose first event that is, if one was named
	Undoes           string `json:"undoes,omitempty"`           // or the marker
	Common
}

// SessionClearedData takes everything in a thread, or in all, back.
type SessionCleared struct {
	Taking
	Common
}

// SessionOverwrittenData says that what follows takes the place of the events
// from an offset on.
type SessionOverwritten struct {
	Taking
	FromOffset int64 `json:"fromOffset"`
	Common
}

// SessionForkedData is the first event of a fork's own.
type SessionForked struct {
	Session string `json:"session,omitempty" shape:"id"` // the fork itself
	Parent  string `json:"parent" shape:"id"`
	At      int64  `json:"at"`             // events before this offset are the parent's
	Copy    bool   `json:"copy,omitempty"` // it stands for itself: not a branch of the parent
	// The newest event before At that takes others back; nil for none.
	Previous  *int64          `json:"previous,omitempty"`
	Status    string          `json:"status,omitempty"` // with which it begins, see [tapedeck.Status]; "" for idle
	Resumable *bool           `json:"resumable,omitempty"`
	Title     string          `json:"title,omitempty"`
	Owner     string          `json:"owner,omitempty"`
	Agent     string          `json:"agent,omitempty"`
	Labels    tapedeck.Labels `json:"labels,omitempty"`
	Common
}

// SessionImportedData says that the events before it came from elsewhere.
type SessionImported struct {
	Format string `json:"format"`
	Source string `json:"source,omitempty"` // such as a file name
	Events int64  `json:"events,omitempty"` // how many
	Title  string `json:"title,omitempty"`
	Common
}

// SessionRedactedData is the receipt for an erasure.
type SessionRedacted struct {
	Offsets []tapedeck.OffsetRange `json:"offsets"`
	Reason  string                 `json:"reason,omitempty"`
	Common
}

// SessionClosedData says that nothing will be appended any more.
type SessionClosed struct {
	Reason string `json:"reason,omitempty"`
	Common
}

// FeedbackAddedData is what somebody thinks of an invocation, a message or an
// event.
type FeedbackAdded struct {
	MessageID string `json:"messageId,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Rating    string `json:"rating,omitempty"` // "up" or "down"
	Comment   string `json:"comment,omitempty"`
	Common
}

// BookmarkAddedData marks an offset, so that people find it again.
type BookmarkAdded struct {
	Offset int64  `json:"offset"`
	Label  string `json:"label,omitempty"`
	Common
}

// SubThreadPrefix begins the names of the threads of sub-agents that an engine has
// made. No task is given to them.
const SubThreadPrefix = "sub_"

// IsSubThread reports whether a thread is that of a sub-agent, by its name.
func IsSubThread(thread string) bool { return strings.HasPrefix(thread, SubThreadPrefix) }
