package durable

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxRestated is the most bytes of the messages in a MESSAGES_SNAPSHOT: clients
// refuse an event of more than 10 MiB. The oldest ones are left out.
const maxRestated = 8 << 20

// A restatement makes AG-UI messages of a conversation.
type restatement struct {
	calls map[[2]string][]payload.ToolCall // by invocation and message
	whole map[string]bool                  // ids of messages that tools have answered with
	list  []restatedMessage
}

type restatedMessage struct {
	offset int64
	value  json.RawMessage
}

// restated returns the messages of a conversation in AG-UI's form, those of tools
// among them.
func restated(s *view.Snapshot) []json.RawMessage {
	r := restatement{calls: map[[2]string][]payload.ToolCall{}, whole: map[string]bool{}}
	makers := map[[2]string]bool{}
	for i := range s.Messages {
		m := &s.Messages[i]
		makers[[2]string{m.Invocation, m.ID}] = true
		r.whole[m.ID] = m.Role == payload.RoleTool
	}
	for i := range s.Calls {
		r.call(&s.Calls[i], makers)
	}
	for i := range s.Messages {
		r.message(&s.Messages[i])
	}
	slices.SortStableFunc(r.list, func(a, b restatedMessage) int { return cmp.Compare(a.offset, b.offset) })
	out, size := make([]json.RawMessage, 0, len(r.list)), 0
	for _, m := range slices.Backward(r.list) {
		if size += len(m.value); size > maxRestated {
			break
		}
		out = append(out, m.value)
	}
	slices.Reverse(out)
	return out
}

// call takes in a tool call and its answer. One that no message has made gets a
// message of its own id, as AG-UI's client gives it one.
func (r *restatement) call(k *view.ToolCall, makers map[[2]string]bool) {
	call := payload.ToolCall{ID: k.ID, Type: "function", Function: payload.FunctionCall{Name: k.Name, Arguments: k.Arguments}}
	if key := [2]string{k.Invocation, k.MessageID}; k.MessageID != "" && makers[key] {
		r.calls[key] = append(r.calls[key], call)
	} else if k.Name != "" {
		r.add(k.Offset, &payload.Message{ID: k.ID, Role: payload.RoleAssistant, ToolCalls: []payload.ToolCall{call}, SubagentRunID: k.Subagent})
	}
	if k.Result == nil || r.whole[k.Result.MessageID] {
		return
	}
	content := k.Result.Parts
	if content == nil {
		content = marshal(k.Result.Text)
	}
	r.add(k.Result.Offset, &payload.Message{
		ID: cmp.Or(k.Result.MessageID, "result_"+k.ID), Role: payload.RoleTool, ToolCallID: k.ID,
		Content: content, Error: k.Result.Error, SubagentRunID: k.Subagent,
	})
}

func (r *restatement) message(m *view.Message) {
	if m.ID == "" || payload.PromptOf(m.Role, m.Metadata) != "" {
		return
	}
	content := m.Parts
	switch {
	case m.Content != nil:
		content = m.Content
	case content == nil:
		content = marshal(m.Text)
	}
	r.add(m.Offset, &payload.Message{
		ID: m.ID, Role: m.Role, Name: m.Name, Content: content, ToolCalls: r.calls[[2]string{m.Invocation, m.ID}],
		ToolCallID: m.ToolCallID, ActivityType: m.Activity, SubagentRunID: m.Subagent,
	})
}

func (r *restatement) add(at int64, m *payload.Message) {
	r.list = append(r.list, restatedMessage{at, marshal(m)})
}
