package narrate

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A tool is a call that the agent has made.
type tool struct {
	id, name, lane string
	args           []byte // until it is called
	called         bool   // its arguments are complete
	answered       bool
}

// A Call begins a tool call.
type Call struct {
	ID       string // as the agent gave it
	Name     string
	Lane     string
	Message  string           // the message that makes it, as the agent gave its id
	Metadata tapedeck.Members // of the event
}

// Tool begins a call, unless it was begun before, and ends the message that is
// open in its lane.
func (n *Narrator) Tool(c Call) {
	if n.tools[c.ID] != nil {
		return
	}
	l := n.lane(c.Lane)
	n.endMessage(l)
	t := &tool{id: n.id("c", c.ID), name: c.Name, lane: c.Lane}
	if t.name == "" {
		t.name = "tool"
	}
	n.tools[c.ID] = t
	d := payload.ToolCallStart{ToolCallID: t.id, ToolCallName: t.name}
	if c.Message != "" && l.named == c.Message {
		d.ParentMessageID = l.spoken
	}
	d.SubagentRunID, d.Metadata = l.run, c.Metadata
	n.event(l, d)
}

// HasTool reports whether a call was begun.
func (n *Narrator) HasTool(id string) bool { return n.tools[id] != nil }

// IsCalled reports whether the arguments of a call are complete.
func (n *Narrator) IsCalled(id string) bool { t := n.tools[id]; return t != nil && t.called }

// IsAnswered reports whether a call was answered.
func (n *Narrator) IsAnswered(id string) bool { t := n.tools[id]; return t != nil && t.answered }

// ToolID returns the id of a call in the log, "" if it was not begun.
func (n *Narrator) ToolID(id string) string {
	if t := n.tools[id]; t != nil {
		return t.id
	}
	return ""
}

// Args continues the arguments of a call.
func (n *Narrator) Args(id, delta string) {
	t := n.tools[id]
	if t == nil || t.called || delta == "" {
		return
	}
	t.args = append(t.args, delta...)
	n.putIn(n.lane(t.lane), tapedeck.Event{Type: tapedeck.ToolCallArgs, Data: content("toolCallId", t.id, delta)})
}

// Input gives the arguments of a call as a whole and completes it. If they came
// in pieces, these count; if more pieces are to come, the call stays open.
func (n *Narrator) Input(id string, whole json.RawMessage) {
	t := n.tools[id]
	if t == nil || t.called || len(t.args) > 0 && !json.Valid(t.args) {
		return
	}
	if len(t.args) == 0 && string(whole) != "null" {
		n.Args(id, string(whole))
	}
	n.Called(id)
}

// Called says that the arguments of a call are complete. If it sets the plan, so
// does the narrator.
func (n *Narrator) Called(id string) {
	t := n.tools[id]
	if t == nil || t.called {
		return
	}
	t.called = true
	l := n.lane(t.lane)
	n.event(l, payload.ToolCallEnd{ToolCallID: t.id})
	if entries, ok := Todos(t.name, t.args); ok {
		n.planIn(l, entries)
	}
	l.board.called(id, t.name, t.args)
	t.args = nil
}

// An Answer is what a tool has answered.
type Answer struct {
	Content  json.RawMessage // a string, or parts as AG-UI has them; nil for an empty one
	Failed   bool
	Native   json.RawMessage  // what else the agent tells of it, in its own structure
	Metadata tapedeck.Members // of the event
}

// Answered answers a call, once.
func (n *Narrator) Answered(id string, a Answer) {
	t := n.tools[id]
	if t == nil || t.answered {
		return
	}
	n.Called(id)
	t.answered = true
	if len(a.Content) == 0 {
		a.Content = json.RawMessage(`""`)
	}
	d := payload.ToolCallResult{MessageID: n.id("t", id), ToolCallID: t.id, Content: a.Content, Role: payload.RoleTool}
	if d.Metadata = a.Metadata; a.Failed {
		if d.Metadata == nil {
			d.Metadata = tapedeck.Members{}
		}
		d.Metadata[tapedeck.VendorKey] = json.RawMessage(`{"error":true}`)
	}
	l := n.lane(t.lane)
	d.SubagentRunID = l.run
	n.event(l, d)
	if entries, changed := l.board.answered(id, a); changed {
		n.planIn(l, entries)
	}
	if id == "" {
		delete(n.tools, id) // the next without an id is another
	}
}

// Plan sets the plan, unless it is as it was.
func (n *Narrator) Plan(entries []payload.PlanEntry) { n.planIn(n.lanes[""], entries) }

func (n *Narrator) planIn(l *lane, entries []payload.PlanEntry) {
	if entries == nil {
		entries = []payload.PlanEntry{}
	}
	e := payload.NewEvent(payload.PlanUpdated{Entries: entries, Attributed: payload.Attributed{SubagentRunID: l.run}})
	if string(e.Data) == l.plan {
		return
	}
	l.plan = string(e.Data)
	n.putIn(l, e)
}

// Text returns the content of a message that is text.
func Text(s string) json.RawMessage { return appendString(nil, s) }
