package agui

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// pageMessages is how many messages one question to the views asks for.
const pageMessages = 10_000

// conversation returns the whole conversation of a thread as of an offset.
func (h *handler) conversation(ctx context.Context, at place, head int64) (view.Snapshot, error) {
	q := view.Query{At: &head, Thread: at.lane, Limit: pageMessages}
	s, err := h.Views.Snapshot(ctx, at.session, q)
	if err != nil {
		return s, err
	}
	if head < 0 || s.At < head {
		q.At = &s.At
	}
	for earlier := s.Earlier; earlier > 0 && len(s.Messages) > 0; {
		q.Before = s.Messages[0].Offset
		page, err := h.Views.Snapshot(ctx, at.session, q)
		if err != nil {
			return s, err
		}
		if len(page.Messages) == 0 {
			break
		}
		s.Messages = append(page.Messages, s.Messages...)
		s.Calls = append(page.Calls, s.Calls...)
		earlier = page.Earlier
	}
	return s, nil
}

// A placed message has the offset by which messages are sorted.
type placed struct {
	payload.Message
	offset int64
}

// A restating builds the messages of AG-UI from a view. It puts each message where a
// client that has seen the events has it.
type restating struct {
	profile profile
	list    []*placed
	byID    map[string]*placed
	makers  map[string]*placed   // by the id of the call
	answers map[*placed][]placed // the answers of tools, by the message that made the call
}

// messagesOf returns the messages of a conversation. It leaves out the system texts
// of models, which no front end needs.
func (p profile) messagesOf(s *view.Snapshot) []payload.Message {
	r := restating{profile: p, byID: map[string]*placed{}, makers: map[string]*placed{}, answers: map[*placed][]placed{}}
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
		Metadata: metadata(m.Metadata, m.Offset, m.Invocation, true),
	}
	if r.profile != legacy {
		out.SubagentRunID = m.Subagent
	}
	switch {
	case m.Role == payload.RoleActivity:
		out.Content = m.Content
	case m.Parts != nil && (m.Role == payload.RoleUser || r.profile != legacy):
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
		if r.profile != legacy {
			m.SubagentRunID = k.Subagent
		}
		maker = r.add(m, k.Offset)
	}
	maker.ToolCalls = append(maker.ToolCalls, payload.ToolCall{
		ID: k.ID, Type: "function", Function: payload.FunctionCall{Name: k.Name, Arguments: k.Arguments},
		Metadata: metadata(nil, k.Offset, k.Invocation, true),
	})
	maker.offset = min(maker.offset, k.Offset)
	if k.Result == nil {
		return
	}
	answer := payload.Message{
		ID: k.Result.MessageID, Role: payload.RoleTool, ToolCallID: k.ID, Error: k.Result.Error,
		Content: jsonobj.AppendJSON(nil, k.Result.Text), Metadata: metadata(nil, k.Result.Offset, k.Invocation, true),
	}
	if k.Result.Parts != nil && r.profile != legacy {
		answer.Content = k.Result.Parts
	}
	if r.profile != legacy {
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

// clean returns a message of a client or of another agent for a client: without our
// metadata and without members that AG-UI does not define. It gets the place of e if
// marked is true; e may also repeat a message that is elsewhere.
func (p profile) clean(m payload.Message, e *tapedeck.Event, marked bool) payload.Message {
	raw, _ := json.Marshal(m.Metadata) // it was decoded from JSON
	m.Metadata, m.Extra = metadata(raw, e.Offset, e.Invocation, marked), nil
	if len(m.Metadata) == 0 {
		m.Metadata = nil
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Extra, m.ToolCalls[i].Function.Extra = nil, nil
	}
	if p == legacy {
		m.SubagentRunID = ""
		if m.Role == payload.RoleTool {
			m.Content = flat(m.Content)
		}
	}
	return m
}
