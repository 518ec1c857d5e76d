package view

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A State is the state that agent and user interface share in a thread.
type State struct {
	Offset     int64           `json:"offset"` // the offset of the newest event that changed it
	Thread     string          `json:"thread"`
	Invocation string          `json:"invocation,omitempty"`
	Value      json.RawMessage `json:"value"`
}

// A Plan is the plan of an agent in a thread. When its run ends, no entry stays
// in progress.
type Plan struct {
	Offset     int64           `json:"offset"`
	Thread     string          `json:"thread"`
	Invocation string          `json:"invocation,omitempty"`
	Status     tapedeck.Status `json:"status,omitempty"` // the status of its run; "" if it belongs to no run
	Timestamp  Time            `json:"timestamp"`
	Entries    []PlanEntry     `json:"entries"`
}

// A PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Status   string `json:"status,omitempty"`   // pending, in_progress, completed or cancelled, or [PlanInterrupted]
	Priority string `json:"priority,omitempty"` // high, medium or low
}

// A Note says that an event could not be folded, and why. The view is the same
// as without the event.
type Note struct {
	Offset     int64  `json:"offset"`
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
	Type       string `json:"type"`
	Reason     string `json:"reason"`
}

// A [Note] has one of these reasons.
const (
	Malformed   = "malformed"   // the data does not have the shape of the type
	Unpatchable = "unpatchable" // the JSON Patch does not fit the value, or costs too much
)

// maxNotes is the largest number of notes that are kept; further notes are only
// counted.
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

// A state is a JSON value that patches change. It is decoded only for the first
// patch.
type state struct {
	raw        json.RawMessage // nil for none
	shared     bool            // other threads have the same raw
	doc        *document       // the decoded value, instead of raw
	offset     int64
	invocation string
}

func (s *state) patch(e *tapedeck.Event, delta json.RawMessage, p *patchBudget) error {
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

// document returns the decoded state. The first patch of the initial state in a
// thread costs budget, because there may be any number of threads that copy it.
func (s *state) document(p *patchBudget) (*document, error) {
	if s.doc != nil {
		return s.doc, nil
	}
	if s.shared {
		if err := p.spend(len(s.raw)); err != nil {
			return nil, err
		}
	}
	doc, err := newDocument(s.raw, p)
	if err == nil && s.raw != nil { // decode once, also if the patch does not fit
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
	if l.state.patch(e, d.Delta, &c.budget) != nil {
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

// PlanInterrupted is the status of an entry that was in progress when its run
// was cancelled, failed or died. Agents do not use it, so it differs from every
// status that an agent reports.
const PlanInterrupted = "interrupted"

// endPlan ends the plan of an invocation. If the run is complete or waits for
// an answer, the entries keep the status that the agent reported.
func (l *lane) endPlan(invocation string, status tapedeck.Status, e *tapedeck.Event) {
	if l.plan == nil || l.plan.Invocation != invocation || l.plan.Status != tapedeck.StatusRunning {
		return
	}
	p := *l.plan // earlier snapshots share the old plan
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
	if _, ok := l.message[nameOf(activity, d.MessageID)]; ok && d.Replace != nil && !*d.Replace {
		return true
	}
	c.putMessage(l, e, &wireMessage{ID: d.MessageID, Role: activity, Activity: d.Activity, Content: d.Content, Subagent: d.Subagent})
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
	m, ok := l.message[nameOf(activity, d.MessageID)]
	if !ok || m.doc.patch(e, d.Patch, &c.budget) != nil {
		c.note(e, Unpatchable)
	}
	return true
}
