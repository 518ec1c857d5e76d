package narrate

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A tool is the state of one tool call.
type tool struct {
	id, name, lane string
	args           []byte // the arguments so far; nil when they are complete
	halves         payload.Halves
	called         bool // the arguments are complete
	answered       bool
}

// A Call describes a tool call that begins.
type Call struct {
	ID       string // the agent's id
	Name     string
	Lane     string
	Message  string           // the agent's id of the message that has the call
	Metadata tapedeck.Members // metadata of the event
}

// Tool begins a call and ends the open message of its lane. A second Tool for the same
// call does nothing.
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
	if c.Message != "" && l.textNative == c.Message {
		d.ParentMessageID = l.textID
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

// ToolID returns the id of a call in the log; "" if the call was not begun.
func (n *Narrator) ToolID(id string) string {
	if t := n.tools[id]; t != nil {
		return t.id
	}
	return ""
}

// Args continues the arguments of a call. A delta may end with half of a character, as in
// [Narrator.Say].
func (n *Narrator) Args(id, delta string) {
	t := n.tools[id]
	if t == nil || t.called || delta == "" {
		return
	}
	n.moreArgs(t, t.halves.Next(payload.Piece(delta)))
}

func (n *Narrator) moreArgs(t *tool, text string) {
	if text == "" {
		return
	}
	t.args = append(t.args, text...)
	n.yieldIn(n.lane(t.lane), tapedeck.Event{Type: tapedeck.ToolCallArgs, Data: content("toolCallId", t.id, text)})
}

// Input sets the whole arguments of a call and completes it. If pieces have arrived, they
// are used, and whole is ignored. If the pieces are not complete yet, the call stays open.
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

// Called marks the arguments of a call as complete. If the call sets the plan of the
// agent, Called records the plan, too.
func (n *Narrator) Called(id string) {
	t := n.tools[id]
	if t == nil || t.called {
		return
	}
	t.called = true
	l := n.lane(t.lane)
	n.moreArgs(t, t.halves.End())
	n.event(l, payload.ToolCallEnd{ToolCallID: t.id})
	if entries, ok := Todos(t.name, t.args); ok {
		n.planIn(l, entries)
	}
	l.board.called(id, t.name, t.args)
	t.args = nil
}

// An Answer is the answer of a tool.
type Answer struct {
	Content  json.RawMessage // a string, or parts in the form of AG-UI; nil for ""
	Failed   bool
	Native   json.RawMessage  // more about the answer, in the agent's own structure; read for the id of a new todo
	Metadata tapedeck.Members // metadata of the event
}

// Answered records the answer of a call. A second answer is ignored.
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
		d.Metadata = tapedeck.Meta{Error: true}.In(d.Metadata)
	}
	l := n.lane(t.lane)
	d.SubagentRunID = l.run
	n.event(l, d)
	if entries, changed := l.board.answered(id, a); changed {
		n.planIn(l, entries)
	}
	if id == "" {
		delete(n.tools, id) // the next call without an id is a new call
	}
}

// Plan records the plan of the agent itself, if it has changed.
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
	n.yieldIn(l, e)
}

// Text returns s as the content of a message.
func Text(s string) json.RawMessage { return appendString(nil, s) }
