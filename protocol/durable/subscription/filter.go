package subscription

import (
	"bytes"
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A filter selects events of sessions. A subscription with a filter is woken by these
// events only, and by no stream.
type filter struct {
	types [][]byte // of the events, in quotes
	match func(e *tapedeck.Event) bool
}

// filters are the filters by name.
var filters = map[string]*filter{
	"run-finished": {quoted(tapedeck.RunFinished, tapedeck.RunError), func(e *tapedeck.Event) bool {
		return e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError
	}},
	"question-asked": {quoted(tapedeck.PermissionRequested, tapedeck.RunFinished), isQuestion},
	"task-added":     {quoted(tapedeck.MessageAdded), isTask},
}

func quoted(types ...string) [][]byte {
	out := make([][]byte, len(types))
	for i, t := range types {
		out[i] = []byte(`"` + t + `"`)
	}
	return out
}

// isQuestion reports whether an agent waits for an answer after e.
func isQuestion(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.PermissionRequested:
		return true
	case tapedeck.RunFinished:
		var d payload.RunFinished
		return e.Unpack(&d) && d.Outcome != nil && d.Outcome.Type == payload.OutcomeInterrupt
	}
	return false
}

// isTask reports whether e is the message of a user that asks for a run.
func isTask(e *tapedeck.Event) bool {
	var d payload.MessageAdded
	return e.Type == tapedeck.MessageAdded && e.Invocation != "" && e.Unpack(&d) && d.Message.Role == payload.RoleUser
}

// selects decodes a record if it may be selected. It reports whether it is: an erased
// event never is.
func (f *filter) selects(r tapedeck.Record) (e tapedeck.Event, ok bool) {
	for _, t := range f.types {
		if bytes.Contains(r.Data, t) { // decoding takes much longer
			e, err := r.Event()
			return e, err == nil && !e.Erased() && f.match(&e)
		}
	}
	return e, false
}

// A trigger is an event that a filter selected, as a worker sees it. It has no payload,
// so an erasure has nothing to remove from it.
type trigger struct {
	Offset     string    `json:"offset"`
	Type       string    `json:"type"`
	Thread     string    `json:"thread"`
	Invocation string    `json:"invocation,omitempty"`
	Timestamp  time.Time `json:"timestamp"`
}

// Limits of one search for triggers. The next wake continues where it ends.
const (
	maxTriggers = 100
	maxScanned  = 10_000 // events
)

// find returns the first triggers of a session from an offset on, at most limit, and the
// offset up to which it has searched.
func (f *filter) find(ctx context.Context, log Log, session string, gen, from, to int64, limit int) (found []trigger, end int64, err error) {
	for end = from; end < to; {
		p, err := log.Read(ctx, session, tapedeck.Range{From: end})
		if err != nil {
			return nil, end, err
		}
		for _, r := range p.Records {
			if end = r.Offset + 1; end > to {
				return found, to, nil
			}
			e, ok := f.selects(r)
			if !ok {
				continue
			}
			found = append(found, trigger{positionOf(gen, e.Offset), e.Type, e.ThreadName(), e.Invocation, e.Time})
			if len(found) == limit {
				return found, end, nil
			}
		}
		if end = p.Next; p.CaughtUp() {
			break
		}
	}
	return found, end, nil
}
