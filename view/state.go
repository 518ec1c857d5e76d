package view

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A State is the state that agent and screen share in a thread.
type State struct {
	Offset     int64           `json:"offset"` // of the event that changed it last
	Thread     string          `json:"thread"`
	Invocation string          `json:"invocation,omitempty"`
	Value      json.RawMessage `json:"value"`
}

// A Plan is what an agent intends to do in a thread. It ends with its run: then
// nothing of it is in progress any more.
type Plan struct {
	Offset     int64           `json:"offset"`
	Thread     string          `json:"thread"`
	Invocation string          `json:"invocation,omitempty"`
	Status     tapedeck.Status `json:"status,omitempty"` // of its run; "" if it belongs to none
	Timestamp  Time            `json:"timestamp"`
	Entries    []PlanEntry     `json:"entries"`
}

// A PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Status   string `json:"status,omitempty"`   // pending, in_progress, completed or cancelled, or [PlanInterrupted]
	Priority string `json:"priority,omitempty"` // high, medium or low
}

// A Note says that an event could not be folded, and why. The view is as if
// the event had not been there.
type Note struct {
	Offset     int64  `json:"offset"`
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
	Type       string `json:"type"`
	Reason     string `json:"reason"`
}

// The reasons of a [Note].
const (
	Malformed   = "malformed"   // the data has another shape than its type says
	Unpatchable = "unpatchable" // the JSON Patch does not fit what it patches, or costs too much
)

// maxNotes is how many notes are kept; those after it are counted.
const maxNotes = 100

func (c *Conversation) note(e *tapedeck.Event, reason string) {
	if len(c.notes) == maxNotes {
		c.unnoted++
		return
	}
	c.notes = append(c.notes, Note{
		Offset: e.Offset, Thread: e.ThreadName(), Invocation: e.Invocation, Type: e.Type, Reason: reason,
	})
}

// A state is a JSON value that grows by patches. It is decoded only when it is
// patched.
type state struct {
	raw        json.RawMessage // nil for none
	shared     bool            // raw is that of other threads too
	doc        *document       // instead of raw
	offset     int64
	invocation string
}

func (s *state) patch(e *tapedeck.Event, delta json.RawMessage, p *purse) error {
	doc, err := s.document(p)
	if err != nil {
		return err
	}
	if err := doc.patch(delta); err != nil {
		return err
	}
	s.doc = doc
	s.offset, s.invocation = e.Offset, e.Invocation
	return nil
}

// document returns the state decoded. That a thread makes the initial state its
// own is paid for: there may be any number of threads.
func (s *state) document(p *purse) (*document, error) {
	if s.doc != nil {
		return s.doc, nil
	}
	if s.shared {
		if err := p.spend(len(s.raw)); err != nil {
			return nil, err
		}
	}
	doc, err := newDocument(s.raw, p)
	if err == nil && s.raw != nil { // decoded once, whether the patch fits or not
		s.doc, s.raw = doc, nil
	}
	return doc, err
}

// value returns the state as JSON.
func (s *state) value() json.RawMessage {
	if s.doc == nil {
		return s.raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s.doc.root) // cannot fail: it was decoded from JSON
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (c *Conversation) stateSnapshot(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Snapshot json.RawMessage `json:"snapshot"`
	}
	if !decode(e, &d) || len(d.Snapshot) == 0 {
		return false
	}
	l.state = state{raw: d.Snapshot, offset: e.Offset, invocation: e.Invocation}
	return true
}

func (c *Conversation) stateDelta(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Delta json.RawMessage `json:"delta"`
	}
	if !decode(e, &d) {
		return false
	}
	if l.state.patch(e, d.Delta, &c.purse) != nil {
		c.note(e, Unpatchable)
	}
	return true
}

func (c *Conversation) planUpdated(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Entries []PlanEntry `json:"entries"`
	}
	if !decode(e, &d) || d.Entries == nil {
		return false
	}
	l.setPlan(e, d.Entries)
	return true
}

func (l *lane) setPlan(e *tapedeck.Event, entries []PlanEntry) {
	l.plan = &Plan{Offset: e.Offset, Thread: l.Name, Invocation: e.Invocation, Timestamp: Time{e.Time}, Entries: entries}
	if w, ok := l.open[e.Invocation]; ok && w.run != nil {
		l.plan.Status = w.run.Status
	}
}

// PlanInterrupted is the status of an entry that was in progress when its run was
// cancelled, failed or died. No agent says it, so it can be told from the agent's
// own words.
const PlanInterrupted = "interrupted"

// endPlan ends the plan of an invocation. Of a run that is complete, or waits for
// an answer, the agent's own word stays.
func (l *lane) endPlan(invocation string, status tapedeck.Status, e *tapedeck.Event) {
	if l.plan == nil || l.plan.Invocation != invocation || l.plan.Status != tapedeck.StatusRunning {
		return
	}
	p := *l.plan // views that were given out have the old one
	p.Status = status
	if status == tapedeck.StatusCancelled || e.Type != tapedeck.RunFinished {
		p.Entries = slices.Clone(p.Entries)
		for i := range p.Entries {
			if p.Entries[i].Status == "in_progress" {
				p.Entries[i].Status = PlanInterrupted
			}
		}
	}
	l.plan = &p
}

func (c *Conversation) activitySnapshot(l *lane, e *tapedeck.Event) bool {
	var d struct {
		MessageID string          `json:"messageId"`
		Activity  string          `json:"activityType"`
		Content   json.RawMessage `json:"content"`
		Replace   *bool           `json:"replace"`
		Subagent  string          `json:"subagentRunId"`
	}
	if !decode(e, &d) || d.MessageID == "" {
		return false
	}
	if m, ok := l.message[d.MessageID]; ok && m.Role == activity && d.Replace != nil && !*d.Replace {
		return true
	}
	c.put(l, e, &wireMessage{ID: d.MessageID, Role: activity, Activity: d.Activity, Content: d.Content, Subagent: d.Subagent})
	return true
}

func (c *Conversation) activityDelta(l *lane, e *tapedeck.Event) bool {
	var d struct {
		MessageID string          `json:"messageId"`
		Patch     json.RawMessage `json:"patch"`
	}
	if !decode(e, &d) {
		return false
	}
	m, ok := l.message[d.MessageID]
	if !ok || m.Role != activity || m.doc.patch(e, d.Patch, &c.purse) != nil {
		c.note(e, Unpatchable)
	}
	return true
}
