package protocols

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// An item is a message, a thought or a tool call, in a form in which what all protocols
// deliver can be compared. The id is not compared.
type item struct {
	Kind               string // the role of a message, or "call"
	Text               string
	Name, Args, Result string // of a call; Args and Result are JSON or text

	id, answer string // of the message or the call, and of the answer to the call
}

const call = "call"

// A conversation is what a client has built from what it was sent.
type conversation struct{ items []*item }

func (c *conversation) reset() { c.items = nil }

// open returns the item of an id, and adds it if it is new.
func (c *conversation) open(kind, id string) *item {
	if it := c.find(kind, id); it != nil {
		return it
	}
	it := &item{Kind: kind, id: id}
	c.items = append(c.items, it)
	return it
}

func (c *conversation) find(kind, id string) *item {
	i := slices.IndexFunc(c.items, func(it *item) bool { return it.Kind == kind && it.id == id })
	if i < 0 {
		return nil
	}
	return c.items[i]
}

// message returns the text message or the thought with an id, nil if there is none.
func (c *conversation) message(id string) *item {
	return cmp.Or(c.find(payload.RoleAssistant, id), c.find(payload.RoleReasoning, id), c.find(payload.RoleUser, id))
}

// add adds a whole message, or replaces the one that has its id.
func (c *conversation) add(m *payload.Message) {
	if m.Role == payload.RoleTool {
		it := c.open(call, m.ToolCallID)
		it.Result, it.answer = m.Text(), m.ID
		return
	}
	if len(m.Content) > 0 {
		c.open(m.Role, m.ID).Text = m.Text()
	}
	for i := range m.ToolCalls {
		it := c.open(call, m.ToolCalls[i].ID)
		it.Name, it.Args = m.ToolCalls[i].Function.Name, m.ToolCalls[i].Function.Arguments
	}
}

// An agEvent has the members of the AG-UI events that make a conversation.
type agEvent struct {
	MessageID, Role, Delta   string
	ToolCallID, ToolCallName string
	Content                  json.RawMessage
	Message                  json.RawMessage   // of message.added; RUN_ERROR has a text
	Messages                 []payload.Message // of MESSAGES_SNAPSHOT
}

// apply applies an event of AG-UI, or a message.added.
func (c *conversation) apply(typ string, data []byte) error {
	var d agEvent
	if len(data) > 0 {
		if err := json.Unmarshal(data, &d); err != nil {
			return err
		}
	}
	switch typ {
	case tapedeck.MessageAdded:
		var m payload.Message
		if err := json.Unmarshal(d.Message, &m); err != nil {
			return err
		}
		c.add(&m)
	case tapedeck.MessagesSnapshot:
		c.reset()
		for i := range d.Messages {
			c.add(&d.Messages[i])
		}
	case tapedeck.TextMessageStart:
		c.open(cmp.Or(d.Role, payload.RoleAssistant), d.MessageID)
	case tapedeck.ReasoningMessageStart:
		c.open(payload.RoleReasoning, d.MessageID)
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
		it := c.message(d.MessageID)
		if it == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "a part of message %s, which has not begun", d.MessageID)
		}
		it.Text += d.Delta
	case tapedeck.ToolCallStart:
		c.open(call, d.ToolCallID).Name = d.ToolCallName
	case tapedeck.ToolCallArgs:
		c.open(call, d.ToolCallID).Args += d.Delta
	case tapedeck.ToolCallResult:
		c.add(&payload.Message{Role: payload.RoleTool, ToolCallID: d.ToolCallID, Content: d.Content})
	}
	return nil
}

// normal returns the items as they are compared: without empty messages, and with one
// spelling of JSON.
func (c *conversation) normal() []item {
	out := []item{}
	for _, it := range c.items {
		if it.Kind != call && it.Text == "" {
			continue
		}
		n := *it
		n.id, n.answer, n.Args, n.Result = "", "", spelled(it.Args), spelled(it.Result)
		out = append(out, n)
	}
	return out
}

// spelled returns JSON in one spelling, and other text as it is. No arguments are an
// empty object.
func spelled(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	if s, ok := v.(string); ok {
		return spelled(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}

// joined joins the texts of the agent that follow each other.
func joined(items []item) (out []item) {
	for _, it := range items {
		if n := len(out); n > 0 && it.Kind == payload.RoleAssistant && out[n-1].Kind == it.Kind {
			out[n-1].Text += it.Text
			continue
		}
		out = append(out, it)
	}
	return out
}

// byKind sorts the items by kind, and keeps the order of each kind. A snapshot of
// tapedeck.replay.v1 has one list for each kind.
func byKind(items []item) []item {
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(rank(a), rank(b)) })
	return items
}

func rank(it item) int {
	switch it.Kind {
	case payload.RoleReasoning:
		return 1
	case call:
		return 2
	}
	return 0
}

// conversationOf returns the conversation of a snapshot.
func conversationOf(s *view.Snapshot) *conversation {
	type placed struct {
		offset int64
		item   *item
	}
	var all []placed
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Role != payload.RoleTool {
			all = append(all, placed{m.Offset, &item{Kind: m.Role, Text: m.Text}})
		}
	}
	for i := range s.Calls {
		k := &s.Calls[i]
		it := &item{Kind: call, Name: k.Name, Args: k.Arguments}
		if k.Result != nil {
			it.Result = k.Result.Text
		}
		all = append(all, placed{k.Offset, it})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
	c := &conversation{}
	for _, p := range all {
		c.items = append(c.items, p.item)
	}
	return c
}
