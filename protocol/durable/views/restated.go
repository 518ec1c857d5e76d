package views

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxRestated is the largest size of the messages in a MESSAGES_SNAPSHOT, in bytes:
// clients refuse an event of more than 10 MiB. The oldest messages are left out.
const maxRestated = 8 << 20

// A restatement turns a conversation into AG-UI messages.
type restatement struct {
	calls map[[2]string][]payload.ToolCall // by invocation and message
	whole map[string]bool                  // the ids of the answers of tools that are messages
	list  []restatedMessage
}

type restatedMessage struct {
	offset int64
	value  json.RawMessage
}

// restated returns the messages of a conversation in AG-UI's form, including those of
// tools.
func restated(s *view.Snapshot) []json.RawMessage {
	r := restatement{calls: map[[2]string][]payload.ToolCall{}, whole: map[string]bool{}}
	callers := map[[2]string]bool{}
	for i := range s.Messages {
		m := &s.Messages[i]
		callers[[2]string{m.Invocation, m.ID}] = true
		r.whole[m.ID] = m.Role == payload.RoleTool
	}
	for i := range s.Calls {
		r.addCall(&s.Calls[i], callers)
	}
	for i := range s.Messages {
		r.addMessage(&s.Messages[i])
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

// addCall adds a tool call and its answer. A call without a message gets a message
// with the id of the call, as AG-UI's client does it.
func (r *restatement) addCall(k *view.ToolCall, callers map[[2]string]bool) {
	call := payload.ToolCall{ID: k.ID, Type: "function", Function: payload.FunctionCall{Name: k.Name, Arguments: k.Arguments}}
	if key := [2]string{k.Invocation, k.MessageID}; k.MessageID != "" && callers[key] {
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

// addMessage adds a message, with the calls that it makes.
func (r *restatement) addMessage(m *view.Message) {
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
