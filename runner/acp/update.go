package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// This package decodes messages into structs of its own, because the generated types of
// the SDK refuse a whole update if one member has an unknown kind.

// A chunk is a piece of a message.
type chunk struct {
	MessageID string `json:"messageId"`
	Content   struct {
		Type string        `json:"type"`
		Text payload.Piece `json:"text"`
	} `json:"content"`
	Meta struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"_meta"`
}

// maxStray is how many bytes of a line that is not a message are kept.
const maxStray = 4 << 10

// handle handles a request or a notification of the agent.
func (c *conversation) handle(m jsonrpc.Message) {
	switch {
	case m.Method == "":
		c.n.Raw(c.runner.link(), m.Params[:min(len(m.Params), maxStray)])
	case m.Method == "session/request_permission" && m.ID != nil:
		c.ask(m)
	case m.ID != nil:
		c.answered(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no method " + m.Method})
	case m.Method == "session/update":
		c.update(m.Params)
	default:
		c.keep(m)
	}
}

// keep stores a notification that maps to no event.
func (c *conversation) keep(m jsonrpc.Message) {
	raw, err := json.Marshal(map[string]any{"method": m.Method, "params": m.Params})
	if err == nil {
		c.n.Raw(c.runner.link(), raw)
	}
}

// update handles an update of a conversation. An update of another conversation, such as
// that of a sub-agent, is only kept as RAW.
func (c *conversation) update(params json.RawMessage) {
	var u struct {
		Session string          `json:"sessionId"`
		Update  json.RawMessage `json:"update"`
	}
	var kind struct {
		Kind string `json:"sessionUpdate"`
	}
	if json.Unmarshal(params, &u) != nil || json.Unmarshal(u.Update, &kind) != nil {
		c.n.Raw(c.runner.link(), params)
		return
	}
	take := updates[kind.Kind]
	if take != nil && !c.muted {
		c.enter(u.Update)
	}
	switch {
	case c.muted && take != nil && kind.Kind != "usage_update":
		c.replayed++
		return // the update repeats the earlier conversation
	case c.native != "" && u.Session != "" && u.Session != c.native, take == nil, !take(c, u.Update):
		c.n.Raw(c.runner.link(), params)
	}
}

// enter sets the lane of an update, and begins the sub-agent if this is its first
// update. The protocol has no sub-agents, but an agent can say which call started one.
func (c *conversation) enter(update json.RawMessage) {
	c.lane = ""
	if c.quirks.Parent == "" {
		return
	}
	parent := narrate.String(narrate.Pointer(update, c.quirks.Parent))
	t := c.tools[parent]
	if t == nil {
		return
	}
	c.lane = parent
	if c.subs[parent] {
		return
	}
	var d struct {
		Type        string `json:"subagent_type"`
		Description string `json:"description"`
		Prompt      string `json:"prompt"`
	}
	c.sendInput(parent, t)
	_ = json.Unmarshal(t.sent, &d) // an input of another form has no description
	c.n.Subagent(parent, cmp.Or(d.Type, "subagent"), d.Description, "")
	if _, before := c.subs[parent]; !before { // otherwise it continues after the answer of its call
		c.n.SubagentTask(parent, d.Prompt)
	}
	c.subs[parent] = true
}

// updates has a handler for each kind of update that maps to events. A handler reports
// false if the update must be kept as RAW.
var updates = map[string]func(*conversation, json.RawMessage) bool{
	"agent_message_chunk": func(c *conversation, u json.RawMessage) bool { return c.chunk(u, c.n.Say) },
	"agent_thought_chunk": func(c *conversation, u json.RawMessage) bool { return c.chunk(u, c.n.Think) },
	"user_message_chunk":  func(*conversation, json.RawMessage) bool { return true }, // the log already has the task; a sub-agent's task is in its call
	"tool_call":           func(c *conversation, u json.RawMessage) bool { return c.toolCall(u, false) },
	"tool_call_update":    func(c *conversation, u json.RawMessage) bool { return c.toolCall(u, true) },
	"plan":                (*conversation).planned,
	"usage_update":        (*conversation).spentSoFar,
	"current_mode_update": (*conversation).switched,
}

// switched records a new mode of the agent as a CUSTOM event, because AG-UI has no event
// for it. The SSE task protocol shows it.
func (c *conversation) switched(u json.RawMessage) bool {
	var d struct {
		Mode string `json:"currentModeId"`
	}
	if json.Unmarshal(u, &d) != nil || d.Mode == "" {
		return false
	}
	value, err := json.Marshal(map[string]any{"profile_type": "mode", "profile_name": d.Mode, "tools": []string{}})
	if err == nil {
		c.n.Event(payload.Custom{Name: "task.profile_switch", Value: value})
	}
	return err == nil
}

// chunk handles a piece of a message. Pieces of the same kind without an id belong to
// one message.
func (c *conversation) chunk(u json.RawMessage, say func(lane, id, delta string)) bool {
	var k chunk
	if json.Unmarshal(u, &k) != nil {
		return false
	}
	if len(k.Meta.Usage) > 0 {
		c.usedByCall(k.Meta.Usage)
		c.n.Pause(c.lane) // usage arrives at the end of a model's answer
	}
	notice := c.quirks.Notices && k.MessageID == "" && strings.HasPrefix(string(k.Content.Text), "Warning:")
	if k.Content.Type != "text" || notice {
		return false
	}
	say(c.lane, k.MessageID, string(k.Content.Text))
	return true
}

func (c *conversation) planned(u json.RawMessage) bool {
	var p struct {
		Entries json.RawMessage `json:"entries"`
	}
	if json.Unmarshal(u, &p) != nil {
		return false
	}
	entries, ok := narrate.Entries(p.Entries)
	if ok {
		c.n.Pause(c.lane)
		c.n.Plan(entries)
	}
	return ok
}
