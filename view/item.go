package view

import (
	"time"

	"github.com/tapedeck/tapedeck"
)

// An Item has the members that messages, tool calls and runs share: where they
// are in the log, to whom they belong, and their times.
type Item struct {
	Offset     int64  `json:"offset"`               // the offset of the event that began it
	EndOffset  *int64 `json:"end_offset,omitempty"` // the offset of the event that ended it; absent while it is open
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
	Instance   string `json:"instance,omitempty"`
	Subagent   string `json:"subagent,omitempty"` // AG-UI's subagentRunId
	Turn       int    `json:"turn,omitempty"`
	Actor      string `json:"actor,omitempty"`

	Status     tapedeck.Status `json:"status"`
	StartedAt  Time            `json:"started_at"`
	EndedAt    *Time           `json:"ended_at,omitempty"`
	DurationMS *int64          `json:"duration_ms,omitempty"` // from StartedAt to EndedAt; a tool call may have the duration that its runner measured
}

// newItem returns an item that e begins.
func newItem(l *lane, e *tapedeck.Event, status tapedeck.Status) Item {
	return Item{
		Offset: e.Offset, Thread: l.Name, Invocation: e.Invocation, Instance: e.Instance,
		Turn: e.Turn, Actor: e.Actor, Status: status, StartedAt: Time{e.Time},
	}
}

// end ends the item with e.
func (i *Item) end(e *tapedeck.Event, status tapedeck.Status) {
	offset, at := e.Offset, Time{e.Time}
	took := max(0, e.Time.Sub(i.StartedAt.Time).Milliseconds()) // clocks may be set back
	i.Status, i.EndOffset, i.EndedAt, i.DurationMS = status, &offset, &at, &took
}

// reopen removes the end of the item.
func (i *Item) reopen(status tapedeck.Status) {
	i.Status, i.EndOffset, i.EndedAt, i.DurationMS = status, nil, nil, nil
}

// A Time is encoded as in the envelope of an event: RFC 3339 in UTC, always
// with milliseconds.
type Time struct{ time.Time }

// MarshalJSON encodes t.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}
