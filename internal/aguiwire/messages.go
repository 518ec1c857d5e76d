// Package aguiwire has what the two sides of AG-UI share: the protocol adapter, where
// front ends get the events of our agents, and the runner, where this server is the
// front end of an agent elsewhere.
package aguiwire

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A Form says how messages are written for a receiver.
type Form struct {
	Legacy bool // for versions before 1.0: no sub-agents, and the answers of tools as text

	// ForAgent means that the receiver is the agent: it knows an id that it has used
	// several times as that of the newest message. A front end knows the oldest one by it.
	ForAgent bool

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
	names   Names
	list    []*placed
	byKey   map[key]*placed
	answers map[*placed][]placed // the answers of tools, by the message that made the call
}

// Messages returns the messages of a conversation. It leaves out the system texts
// of models, which no front end needs.
func (f Form) Messages(s *view.Snapshot) []payload.Message {
	r := restating{form: f, names: f.Names(s), byKey: map[key]*placed{}, answers: map[*placed][]placed{}}
	answers := answersOf(s)
	for i := range s.Messages {
		m := &s.Messages[i]
		if payload.PromptOf(m.Role, m.Metadata) == "" && (m.Role != payload.RoleTool || !answers[m.ID]) {
			r.add(keyOf(m), r.message(m), m.Offset)
		}
	}
	for i := range s.Calls {
		if k := &s.Calls[i]; k.Name != "" {
			r.call(k)
		}
	}
	return r.sorted()
}

// Names returns the ids that the messages of a conversation have in this form.
func (f Form) Names(s *view.Snapshot) Names { return namesOf(s, f.ForAgent) }

func (r *restating) add(k key, m payload.Message, offset int64) *placed {
	p := &placed{Message: m, offset: offset}
	r.byKey[k] = p
	r.list = append(r.list, p)
	return p
}

func (r *restating) message(m *view.Message) payload.Message {
	out := payload.Message{
		ID: r.names.Message(m), Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID, ActivityType: m.Activity,
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
		out.Content = jsonobj.AppendPiece(nil, m.Pieces())
	}
	return out
}

// functionOf returns the function of a call. Arguments that end with half of a character are
// raw, because a client that connects now appends the other half.
func functionOf(k *view.ToolCall) payload.FunctionCall {
	if pieces := k.Pieces(); string(pieces) != k.Arguments {
		return payload.FunctionCall{Name: k.Name, Extra: tapedeck.Members{"arguments": jsonobj.AppendPiece(nil, pieces)}}
	}
	return payload.FunctionCall{Name: k.Name, Arguments: k.Arguments}
}

// call adds a call to the message of its run that made it. Without such a message, a
// client makes one.
func (r *restating) call(k *view.ToolCall) {
	id := r.names.Call(k)
	made := r.names.makerOf(k)
	maker := r.byKey[made]
	if maker == nil {
		m := payload.Message{ID: r.names.Maker(k), Role: payload.RoleAssistant}
		if !r.form.Legacy {
			m.SubagentRunID = k.Subagent
		}
		maker = r.add(made, m, k.Offset)
	}
	maker.ToolCalls = append(maker.ToolCalls, payload.ToolCall{
		ID: id, Type: "function", Function: functionOf(k),
		Metadata: r.form.metadata(nil, k.Offset, k.Invocation),
	})
	maker.offset = min(maker.offset, k.Offset)
	if k.Result == nil {
		return
	}
	answer := payload.Message{
		ID: r.names.Answer(k.Result), Role: payload.RoleTool, ToolCallID: id, Error: k.Result.Error,
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
	return NewMessagesFunc(list, func(m *payload.Message) bool { return known[m.ID] })
}

// NewMessagesFunc is [NewMessages] for a client that may use the id of a known message for a
// new one.
func NewMessagesFunc(list []payload.Message, isKnown func(*payload.Message) bool) []payload.Message {
	for i := range slices.Backward(list) {
		if isKnown(&list[i]) {
			return list[i+1:]
		}
	}
	return list
}
