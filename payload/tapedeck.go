package payload

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// MessageAdded is a whole message that was not streamed. It replaces the
// message with the same id, if that is among the newest 128 of its thread.
type MessageAdded struct {
	Message Message `json:"message"`
	Common
}

// PermissionRequested asks the user for a permission.
type PermissionRequested struct {
	tapedeck.Question
	Common
}

// PermissionAnswered answers a permission.
type PermissionAnswered struct {
	tapedeck.Choice
	Common
}

// InstanceStarted says that an agent takes part in the session.
type InstanceStarted struct {
	ID     string `json:"id" shape:"id"`
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"` // the instance that started it
	Common
}

// PlanUpdated replaces the plan of the thread.
type PlanUpdated struct {
	Entries []PlanEntry `json:"entries"`
	Attributed
}

// A PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string           `json:"content"`
	Status   string           `json:"status"`             // "pending", "in_progress", "completed" or "cancelled"
	Priority string           `json:"priority,omitempty"` // "high", "medium" or "low"
	Extra    tapedeck.Members `json:"-"`
}

// AgentLinked reports the runner's id of its own conversation.
type AgentLinked struct {
	Runner   string `json:"runner"`
	NativeID string `json:"nativeId"` // the id with which the runner can resume it
	Common
}

// AgentStarted identifies the process of an agent, so that a restarted server
// can end a process that an earlier one left running.
type AgentStarted struct {
	PID     int    `json:"pid"`            // of the agent's topmost process
	Started string `json:"started"`        // its start time as the system reports it; a later process with the same PID has another one
	Host    string `json:"host"`           // the machine and its current boot: no process outlives a boot
	Mark    string `json:"mark,omitempty"` // a value in the environment of every process of the agent
	Common
}

// UsageReported is the usage of one model call. The usage of a run is in its
// terminal event.
type UsageReported struct {
	TokenCounts
	CostUSD *float64 `json:"costUsd,omitempty"` // nil if unknown
	Attributed
}

// TerminalOutput is output of a terminal.
type TerminalOutput struct {
	Terminal string `json:"terminal" shape:"id"`
	Data     string `json:"data"` // text with control sequences
	Cuts     []Cut  `json:"cuts,omitempty"`
	Common
}

// TerminalInput is text that was typed into a terminal.
type TerminalInput struct {
	Terminal string `json:"terminal" shape:"id"`
	Data     string `json:"data"`
	Common
}

// TerminalResize sets the size of a terminal.
type TerminalResize struct {
	Terminal string `json:"terminal" shape:"id"`
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
	Common
}

// TerminalExit says that the process of a terminal ended.
type TerminalExit struct {
	Terminal string `json:"terminal" shape:"id"`
	Code     *int   `json:"code,omitempty"`   // nil if a signal ended it
	Signal   string `json:"signal,omitempty"` // such as "SIGKILL"
	Common
}

// A Presence says where a user is in the session.
type Presence struct {
	User     string          `json:"user" shape:"id"`
	Cursor   json.RawMessage `json:"cursor,omitempty"`   // where the user looks, in the front end's own format
	JoinedAt string          `json:"joinedAt,omitempty"` // an RFC 3339 time
	LastSeen string          `json:"lastSeen,omitempty"` // an RFC 3339 time
}

// PresenceJoined says that a user opened the session.
type PresenceJoined struct {
	Presence
	Common
}

// PresenceLeft says that a user left the session.
type PresenceLeft struct {
	Presence
	Common
}

// PresenceMoved says that a user looks at another place.
type PresenceMoved struct {
	Presence
	Common
}

// SessionCreated is the first event of a session.
type SessionCreated struct {
	Title  string            `json:"title,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	Agent  string            `json:"agent,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Budget json.RawMessage   `json:"budget,omitempty" shape:"object"` // what its runs may use together, a tapedeck.Budget; nil for no limit
	State  json.RawMessage   `json:"state,omitempty"`                 // initial shared state; any JSON
	Common
}

// SessionRenamed changes the title, the labels or the budget of a session.
type SessionRenamed struct {
	Title  *string           `json:"title,omitempty"`                 // nil: the title stays
	Labels map[string]string `json:"labels,omitempty"`                // they replace all labels; nil: the labels stay
	Budget json.RawMessage   `json:"budget,omitempty" shape:"object"` // a tapedeck.Budget; nil: the budget stays, empty: there is no limit
	Common
}

// A RevertFields has the members that all jumps share; see [tapedeck.Jump].
type RevertFields struct {
	Marker    string   `json:"marker" shape:"id"`  // the id of the jump, for undo
	Thread    string   `json:"thread,omitempty"`   // the only thread that it reverts; "" for all
	With      []string `json:"with,omitempty"`     // further threads that it reverts: those of sub-agents that were started in the reverted part
	Previous  *int64   `json:"previous,omitempty"` // offset of the jump before it; nil if none
	Status    string   `json:"status,omitempty"`   // the session's status afterwards, see [tapedeck.Status]; "" leaves it unchanged
	Resumable *bool    `json:"resumable,omitempty"`
	Inputs    bool     `json:"inputs,omitempty"` // the session has had inputs, whose events no jump reverts
}

// SessionRewound reverts the events of the session, or of a thread, from an
// offset on. It deletes nothing.
type SessionRewound struct {
	RevertFields
	ToOffset         int64  `json:"toOffset"`                   // the first offset that is reverted
	BeforeInvocation string `json:"beforeInvocation,omitempty"` // the invocation that begins there, if the request named one
	Undoes           string `json:"undoes,omitempty"`           // the marker of the jump that it undoes, if it is an undo
	Common
}

// SessionCleared reverts all events of a thread, or of all threads.
type SessionCleared struct {
	RevertFields
	Common
}

// SessionOverwritten reverts the events from an offset on, because the
// following events replace them.
type SessionOverwritten struct {
	RevertFields
	FromOffset int64           `json:"fromOffset"`
	Context    json.RawMessage `json:"context,omitempty" shape:"object"` // a view.ContextCut, if it was made in the context of an agent
	Common
}

// AttemptSuperseded says that a running agent repeats a step: what the step has done
// so far, from an offset on, does not count any more. See [tapedeck.Jump].
type AttemptSuperseded struct {
	FromOffset int64  `json:"fromOffset"`
	Attempt    int64  `json:"attempt,omitempty"`  // the number of the attempt that begins now, from 2
	Reason     string `json:"reason,omitempty"`   // why the earlier attempt failed, for people
	Previous   *int64 `json:"previous,omitempty"` // offset of the jump before it; nil if none
	Common
}

// SessionForked is the first of a fork's own events.
type SessionForked struct {
	Session string `json:"session,omitempty" shape:"id"` // the fork itself
	Parent  string `json:"parent" shape:"id"`
	At      int64  `json:"at"`             // events before this offset are the parent's
	Copy    bool   `json:"copy,omitempty"` // it is an independent session, not a branch of the parent
	// Previous is the offset of the newest jump before At; nil if none.
	Previous  *int64            `json:"previous,omitempty"`
	Status    string            `json:"status,omitempty"` // the fork's first status, see [tapedeck.Status]; "" means idle
	Resumable *bool             `json:"resumable,omitempty"`
	Title     string            `json:"title,omitempty"`
	Owner     string            `json:"owner,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Budget    json.RawMessage   `json:"budget,omitempty" shape:"object"`  // that of the parent when it was forked; the fork has spent nothing
	Context   json.RawMessage   `json:"context,omitempty" shape:"object"` // as in SessionOverwritten
	Common
}

// SessionImported says that the events before it were imported.
type SessionImported struct {
	Format string `json:"format"`
	Source string `json:"source,omitempty"` // such as a file name
	Events int64  `json:"events,omitempty"` // number of events
	Title  string `json:"title,omitempty"`
	Common
}

// SessionRedacted is the record of an erasure.
type SessionRedacted struct {
	Offsets []tapedeck.OffsetRange `json:"offsets"`
	Reason  string                 `json:"reason,omitempty"`
	Budget  json.RawMessage        `json:"budget,omitempty" shape:"object"` // the budget of the session, which may have been in an erased event
	Spent   json.RawMessage        `json:"spent,omitempty" shape:"object"`  // what the runs of the session have used until now, also in erased events
	Common
}

// SessionClosed says that the session accepts no more events.
type SessionClosed struct {
	Reason string `json:"reason,omitempty"`
	Common
}

// FeedbackAdded is a user's rating of an invocation, a message or an event.
type FeedbackAdded struct {
	MessageID string `json:"messageId,omitempty"`
	Offset    *int64 `json:"offset,omitempty"`
	Rating    string `json:"rating,omitempty"` // "up" or "down"
	Comment   string `json:"comment,omitempty"`
	Common
}

// BookmarkAdded marks an offset for people to find.
type BookmarkAdded struct {
	Offset int64  `json:"offset"`
	Label  string `json:"label,omitempty"`
	Common
}

// SubThreadPrefix begins the names of the threads that an engine creates for
// sub-agents. They accept no tasks.
const SubThreadPrefix = "sub_"

// IsSubThread reports whether the name of a thread is that of a sub-agent's
// thread.
func IsSubThread(thread string) bool { return strings.HasPrefix(thread, SubThreadPrefix) }
