// Package aguiwire has what the two sides of AG-UI share: the protocol adapter, where
// front ends get the events of our agents, and the runner, where this server is the
// front end of an agent elsewhere.
package aguiwire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A Form says how messages are written for a receiver.
type Form struct {
	Legacy bool // for versions before 1.0: no sub-agents, and the answers of tools as text

	// Metadata returns the metadata of a message or call, from that in the log and
	// from its place. A nil Metadata means that they have none.
	Metadata func(raw json.RawMessage, offset int64, invocation string) tapedeck.Members
}

// A placed message has the offset by which messages are sorted.
type placed struct {
	payload.Message
	offset int64
}

// A restating builds the messages of AG-UI from a view. It puts each message where a
// client that has seen the events has it.
type restating struct {
	form    Form
	list    []*placed
	byID    map[string]*placed
	makers  map[string]*placed   // by the id of the call
	answers map[*placed][]placed // the answers of tools, by the message that made the call
}

// Messages returns the messages of a conversation. It leaves out the system texts
// of models, which no front end needs.
func (f Form) Messages(s *view.Snapshot) []payload.Message {
	r := restating{form: f, byID: map[string]*placed{}, makers: map[string]*placed{}, answers: map[*placed][]placed{}}
	answers := map[string]bool{} // ids of tool messages that belong to a call
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Name != "" && k.Result != nil {
			answers[k.Result.MessageID] = true
		}
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		if payload.PromptOf(m.Role, m.Metadata) == "" && (m.Role != payload.RoleTool || !answers[m.ID]) {
			r.add(r.message(m), m.Offset)
		}
	}
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Name != "" {
			r.call(k)
		}
	}
	return r.sorted()
}

func (r *restating) add(m payload.Message, offset int64) *placed {
	p := &placed{Message: m, offset: offset}
	if older := r.byID[m.ID]; older != nil { // an agent has used the id in two runs; the newest message keeps it
		older.ID += "@" + strconv.FormatInt(older.offset, 10)
	}
	r.byID[m.ID] = p
	r.list = append(r.list, p)
	return p
}

func (r *restating) message(m *view.Message) payload.Message {
	out := payload.Message{
		ID: m.ID, Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID, ActivityType: m.Activity,
		Metadata: r.form.metadata(m.Metadata, m.Offset, m.Invocation),
	}
	if !r.form.Legacy {
		out.SubagentRunID = m.Subagent
	}
	switch {
	case m.Role == payload.RoleActivity:
		out.Content = m.Content
	case m.Parts != nil && (m.Role == payload.RoleUser || !r.form.Legacy):
		out.Content = m.Parts
	default:
		out.Content = jsonobj.AppendJSON(nil, m.Text)
	}
	return out
}

// call adds a call to the message that made it. Without such a message, a client
// makes one.
func (r *restating) call(k *view.ToolCall) {
	maker := r.byID[k.MessageID]
	if maker == nil || maker.Role != payload.RoleAssistant {
		m := payload.Message{ID: k.MessageID, Role: payload.RoleAssistant}
		if maker != nil || m.ID == "" {
			m.ID = k.ID
		}
		if !r.form.Legacy {
			m.SubagentRunID = k.Subagent
		}
		maker = r.add(m, k.Offset)
	}
	maker.ToolCalls = append(maker.ToolCalls, payload.ToolCall{
		ID: k.ID, Type: "function", Function: payload.FunctionCall{Name: k.Name, Arguments: k.Arguments},
		Metadata: r.form.metadata(nil, k.Offset, k.Invocation),
	})
	maker.offset = min(maker.offset, k.Offset)
	if k.Result == nil {
		return
	}
	answer := payload.Message{
		ID: k.Result.MessageID, Role: payload.RoleTool, ToolCallID: k.ID, Error: k.Result.Error,
		Content: jsonobj.AppendJSON(nil, k.Result.Text), Metadata: r.form.metadata(nil, k.Result.Offset, k.Invocation),
	}
	if k.Result.Parts != nil && !r.form.Legacy {
		answer.Content = k.Result.Parts
	}
	if !r.form.Legacy {
		answer.SubagentRunID = k.Subagent
	}
	r.answers[maker] = append(r.answers[maker], placed{Message: answer, offset: k.Result.Offset})
}

// sorted returns the messages in their order. The answers of tools follow the
// message that made the calls, as model providers require.
func (r *restating) sorted() []payload.Message {
	slices.SortStableFunc(r.list, func(a, b *placed) int { return cmp.Compare(a.offset, b.offset) })
	out := make([]payload.Message, 0, len(r.list))
	for _, m := range r.list {
		out = append(out, m.Message)
		answers := r.answers[m]
		slices.SortStableFunc(answers, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
		for _, a := range answers {
			out = append(out, a.Message)
		}
	}
	return out
}

func (f Form) metadata(raw json.RawMessage, offset int64, invocation string) tapedeck.Members {
	if f.Metadata == nil {
		return nil
	}
	return f.Metadata(raw, offset, invocation)
}

// NewMessages returns the messages after the newest one that is known. A client sends
// the whole conversation with each run.
func NewMessages(list []payload.Message, known map[string]bool) []payload.Message {
	for i := range slices.Backward(list) {
		if known[list[i].ID] {
			return list[i+1:]
		}
	}
	return list
}

// Known returns the ids of the messages that a client can have from a conversation.
func Known(s *view.Snapshot) map[string]bool {
	ids := map[string]bool{}
	for i := range s.Messages {
		ids[s.Messages[i].ID] = true
	}
	for i := range s.Calls {
		k := &s.Calls[i]
		ids[k.ID], ids[k.MessageID] = true, true
		if k.Result != nil {
			ids[k.Result.MessageID] = true
		}
	}
	delete(ids, "")
	return ids
}
