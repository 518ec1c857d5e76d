package api

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Sessions is one page of the list of sessions, by default newest first.
type Sessions struct {
	Sessions []SessionRow `json:"sessions"`
	Next     string       `json:"next,omitempty"` // the cursor of the next page; absent on the last page
}

// A SessionRow is a session in a list.
type SessionRow struct {
	tapedeck.Session
	Summary *view.SessionSummary `json:"summary,omitempty"` // if the request asks for it
}

// MarshalJSON encodes the row: the members of the session, then its summary.
func (r SessionRow) MarshalJSON() ([]byte, error) {
	row, err := r.Session.MarshalJSON()
	if err != nil || r.Summary == nil {
		return row, err
	}
	summary, err := json.Marshal(r.Summary)
	if err != nil {
		return nil, err
	}
	row = bytes.TrimSuffix(bytes.TrimSpace(row), []byte("}"))
	row = append(row, `,"summary":`...)
	return append(append(row, summary...), '}'), nil
}

// Agents lists the agents that accept tasks.
type Agents struct {
	Agents []tapedeck.Agent `json:"agents"` // the default agent first
}

// Appended reports what an append did.
type Appended struct {
	First     *int64 `json:"first,omitempty"`     // the offset of the first event; absent for a repetition of an append that is not the producer's newest
	Last      *int64 `json:"last,omitempty"`      // the offset of the last event; absent when First is
	Head      int64  `json:"head"`                // the offset that the next event gets
	Duplicate bool   `json:"duplicate,omitempty"` // the producer had appended it before; nothing was written
}

// Events is one page of a session's events.
type Events struct {
	Events []json.RawMessage `json:"events"`           // envelopes; with format=task, events of the task protocol
	Next   int64             `json:"next"`             // the value of `from` for the next page; on the last page it is Head, or 0 when reading backwards
	Cursor string            `json:"cursor,omitempty"` // Next with the incarnation of the session, such as 41@3; `from` takes it, and a session that was deleted and created again answers 410
	Head   int64             `json:"head"`             // the offset that the next event gets
	Closed bool              `json:"closed"`           // the session accepts no more events
}

// Messages is the part of a [view.Snapshot] with the messages.
type Messages struct {
	At       int64          `json:"at"` // the events before this offset are in it
	Messages []view.Message `json:"messages"`
	Earlier  int            `json:"earlier"` // the number of messages before these
}

// SharedState is the part of a [view.Snapshot] with the shared state.
type SharedState struct {
	At    int64       `json:"at"`    // the events before this offset are in it
	State *view.State `json:"state"` // null if there is none
}

// CurrentPlan is the part of a [view.Snapshot] with the plan.
type CurrentPlan struct {
	At   int64      `json:"at"`   // the events before this offset are in it
	Plan *view.Plan `json:"plan"` // null if there is none
}

// Threads is the part of a [view.Snapshot] with the threads.
type Threads struct {
	At      int64         `json:"at"` // the events before this offset are in it
	Threads []view.Thread `json:"threads"`
}

// Tasks lists the runs of a session, each with the user's text that began it.
type Tasks struct {
	At      int64       `json:"at"` // the events before this offset are in it
	Tasks   []view.Task `json:"tasks"`
	Earlier int         `json:"earlier,omitempty"` // the number of tasks before these
}

// Instances lists the agents that take part in a session.
type Instances struct {
	At        int64          `json:"at"` // the events before this offset are in it
	Instances view.Instances `json:"instances"`
}

// Branches is the tree of forks and of reverted branches.
type Branches struct {
	At       int64         `json:"at"` // the events before this offset are in it
	Branches []view.Branch `json:"branches"`
	Cut      bool          `json:"cut,omitempty"` // the tree is larger than its limits
}

// A Context is the input of the next model call.
type Context struct {
	At       int64                 `json:"at"`                 // the events before this offset are in it
	Instance string                `json:"instance,omitempty"` // the instance that has this context; absent if the request names none
	Thread   string                `json:"thread"`
	Messages []view.ContextMessage `json:"messages"`          // the messages in the form of OpenAI's chat interface
	Places   []view.ContextPlace   `json:"places"`            // the places of the messages, one for each message
	Events   []view.ContextEvent   `json:"events,omitzero"`   // the same context, event by event; absent if there are messages before these
	Earlier  int                   `json:"earlier,omitempty"` // the number of messages before these
}

// CaughtUp is the data of the stream's frame caught-up, which follows the events
// that existed when the stream began.
type CaughtUp struct {
	Next   int64  `json:"next"`             // the offset of the next event at that moment
	Cursor string `json:"cursor,omitempty"` // Next with the incarnation of the session, such as 41@3; fromOffset takes it
}

// StreamEnd is the data of the stream's frame end, the last frame.
type StreamEnd struct {
	Next   *int64          `json:"next,omitempty"`   // the offset of the next event; absent if the session is deleted
	Cursor string          `json:"cursor,omitempty"` // Next with the incarnation of the session, such as 41@3
	Reason StreamEndReason `json:"reason"`
}

// A StreamEndReason says why there is nothing more to wait for.
type StreamEndReason string

// The reasons.
const (
	EndClosed   StreamEndReason = "closed"   // the session is closed
	EndTerminal StreamEndReason = "terminal" // the run that the request waits for has ended
	EndDeleted  StreamEndReason = "deleted"  // the session is deleted
)

// A PresenceFrame is the data of the stream's frame presence: an event that is not
// in the log, so it has no offset.
type PresenceFrame struct {
	Type      string          `json:"type"` // presence.joined, presence.moved or presence.left
	Channel   string          `json:"channel"`
	Timestamp string          `json:"timestamp"` // RFC 3339, UTC, milliseconds
	Actor     string          `json:"actor"`
	Data      json.RawMessage `json:"data"` // see the type in the event catalogue
}
