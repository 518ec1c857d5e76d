package protocols

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck/payload"
)

// messagesView follows the view messages of Durable Streams: entities that are inserted,
// updated and deleted.
func messagesView() *reader {
	return &reader{name: "Durable Streams, view messages", whole: true, atEnd: true, follow: followDurable("/views/messages", func(r *reader, raw []byte) error {
		var e struct {
			Type, Key string
			Value     json.RawMessage
			Headers   struct{ Operation string }
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if e.Headers.Operation == "delete" {
			r.change(func() { r.remove(e.Key, e.Type == "toolCall") })
			return nil
		}
		var m payload.Message
		if e.Type == "message" {
			if err := json.Unmarshal(e.Value, &m); err != nil {
				return err
			}
		} else {
			m = payload.Message{Role: payload.RoleAssistant, ToolCalls: make([]payload.ToolCall, 1)}
			if err := json.Unmarshal(e.Value, &m.ToolCalls[0]); err != nil {
				return err
			}
		}
		r.change(func() { r.add(&m) })
		return nil
	})}
}

// remove removes a message, which may be the answer to a call, or a call.
func (c *conversation) remove(id string, isCall bool) {
	c.items = slices.DeleteFunc(c.items, func(it *item) bool { return it.id == id && (it.Kind == call) == isCall })
	for _, it := range c.items {
		if !isCall && it.Kind == call && it.answer == id {
			it.Result, it.answer = "", ""
		}
	}
}

// aguiView follows the view agui of Durable Streams.
func aguiView() *reader {
	return &reader{name: "Durable Streams, view agui", late: true, follow: followDurable("/views/agui", (*reader).agui)}
}

// agui applies an event of AG-UI.
func (r *reader) agui(raw []byte) error {
	var e struct{ Type string }
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	var err error
	r.change(func() { err = r.apply(e.Type, raw) })
	return err
}

// A replayed is a message of tapedeck.replay.v1.
type replayed struct {
	Type, ElementID, MessageID, Role, Delta, Content, Message string
	ToolCallID, ToolName                                      string
	ToolArgs, Result                                          json.RawMessage

	Messages []struct{ ID, Role, Content string }
	Thinking []struct{ Message string }
	Tools    []struct {
		ID, Name     string
		Args, Result json.RawMessage
	}
}

// replaySocket follows with tapedeck.replay.v1. At each connect it asks for the history,
// which stands for all messages before it.
func replaySocket() *reader {
	return &reader{name: "tapedeck.replay.v1", byKind: true, atEnd: true, follow: func(ctx context.Context, r *reader, url string) error {
		c, err := dial(ctx, url+"/api/v1/sessions/"+session+"/ws/replay?user=true", "tapedeck.replay.v1")
		if err != nil {
			return err
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"replay.request","elementId":"`+element+`"}`)); err != nil {
			return err
		}
		restored := false
		for {
			_, b, err := c.Read(ctx)
			if err != nil {
				return err
			}
			var m replayed
			if err := json.Unmarshal(b, &m); err != nil {
				return err
			}
			if restored = restored || m.Type == "messages.snapshot"; !restored {
				continue
			}
			r.change(func() { err = r.replay(&m) })
			if err != nil {
				return err
			}
		}
	}}
}

func (r *reader) replay(m *replayed) error {
	switch m.Type {
	case "messages.snapshot":
		r.restore(m)
	case "clear.history":
		r.reset()
	case "text.message.start":
		r.open(m.Role, m.MessageID)
	case "text.message.content":
		it := r.message(m.MessageID)
		if it == nil {
			return fmt.Errorf("a part of message %s, which has not begun", m.MessageID)
		}
		if it.Text += m.Delta; it.Text != m.Content {
			return fmt.Errorf("the parts of message %s are %q, its content is %q", m.MessageID, it.Text, m.Content)
		}
	case "task.thinking":
		r.open(payload.RoleReasoning, fmt.Sprint(len(r.items))).Text = m.Message
	case "task.tool.start":
		it := r.open(call, m.ToolCallID)
		it.Name, it.Args = m.ToolName, string(m.ToolArgs)
	case "task.tool.end":
		r.open(call, m.ToolCallID).Result = string(m.Result)
	case "error":
		return fmt.Errorf("the server says %q", m.Message)
	}
	return nil
}

func (r *reader) restore(m *replayed) {
	r.reset()
	for _, t := range m.Messages {
		r.open(t.Role, t.ID).Text = t.Content
	}
	for i, t := range m.Thinking {
		r.open(payload.RoleReasoning, fmt.Sprint("thought ", i)).Text = t.Message
	}
	for _, t := range m.Tools {
		it := r.open(call, t.ID)
		it.Name, it.Args, it.Result = t.Name, string(t.Args), string(t.Result)
	}
}
