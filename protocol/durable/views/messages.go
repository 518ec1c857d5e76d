package views

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
)

// messages shows messages and tool calls once they are finished, as entities of the
// state protocol: type "message", an AG-UI message, and type "toolCall". A run that fails
// finishes what it has left open.
//
// The result for an event depends only on the events since its message began. If a
// reader begins in the middle of a message, the fold reads back to its beginning.
type messages struct {
	Source
	session string
	open    map[spanKey]*span
	bytes   int
	runs    endedTexts
	names   names
}

// maxSpan is how many events there may be between the first and the last event of a
// message. It bounds the look-back if the first event is missing.
const maxSpan = 100_000

type spanKey struct {
	kind spanKind
	id   string
}

// A span is a message or tool call that is not finished.
type span struct {
	begin      int64 // offset of its first event
	invocation string
	head       spanData
	body       []byte // the pieces; see [payload.Whole]
	again      bool   // its run had ended it before: body begins with what it had then
}

// spanData has the members of the events of a span.
type spanData struct {
	MessageID  string        `json:"messageId"`
	ToolCallID string        `json:"toolCallId"`
	Role       string        `json:"role"`
	Name       string        `json:"name"`
	ToolName   string        `json:"toolCallName"`
	Parent     string        `json:"parentMessageId"`
	Delta      payload.Piece `json:"delta"`
}

type spanKind byte

const (
	textSpan spanKind = iota + 1
	reasoningSpan
	toolSpan
)

type spanStep byte

const (
	spanBegins spanStep = iota + 1
	spanContinues
	spanEnds
	spanIsWhole // a whole message, which replaces what there is of it
)

var spanEvents = map[string]struct {
	kind spanKind
	step spanStep
}{
	tapedeck.TextMessageStart:        {textSpan, spanBegins},
	tapedeck.TextMessageContent:      {textSpan, spanContinues},
	tapedeck.TextMessageEnd:          {textSpan, spanEnds},
	tapedeck.ReasoningMessageStart:   {reasoningSpan, spanBegins},
	tapedeck.ReasoningMessageContent: {reasoningSpan, spanContinues},
	tapedeck.ReasoningMessageEnd:     {reasoningSpan, spanEnds},
	tapedeck.ToolCallStart:           {toolSpan, spanBegins},
	tapedeck.ToolCallArgs:            {toolSpan, spanContinues},
	tapedeck.ToolCallEnd:             {toolSpan, spanEnds},
}

// spanOf returns the span that e is part of, and its data.
func spanOf(e *tapedeck.Event) (key spanKey, step spanStep, d spanData) {
	if e.Type == tapedeck.MessageAdded {
		return wholeSpan(e)
	}
	event, ok := spanEvents[e.Type]
	if !ok || json.Unmarshal(e.Data, &d) != nil {
		return key, 0, d
	}
	key = spanKey{event.kind, d.MessageID}
	if event.kind == toolSpan {
		key.id = d.ToolCallID
	}
	if key.id == "" {
		return key, 0, d
	}
	return key, event.step, d
}

// wholeSpan returns the span of a whole message that a run may open again: only one of an
// agent.
func wholeSpan(e *tapedeck.Event) (key spanKey, step spanStep, d spanData) {
	m, ok := messageOf(e)
	switch {
	case !ok:
		return key, 0, d
	case m.Role == payload.RoleAssistant:
		key.kind = textSpan
	case m.Role == payload.RoleReasoning:
		key.kind = reasoningSpan
	default:
		return key, 0, d
	}
	key.id = m.ID
	return key, spanIsWhole, spanData{MessageID: m.ID, Role: m.Role, Delta: payload.Piece(m.Text())}
}

func newMessages(from Source, session string, _ int64) Fold {
	return &messages{Source: from, session: session, open: map[spanKey]*span{}, runs: endedTexts{}, names: newNames(from, session)}
}

func (m *messages) Size() int { return m.bytes + m.runs.size() + m.names.size() }

func (m *messages) Apply(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	if _, ok := e.Jump(); ok {
		out, err := m.jumped(ctx, e, out)
		m.names.jump(e)
		return out, err
	}
	named, names, err := m.names.note(ctx, e, isShown(e))
	if err != nil {
		return out, err
	}
	switch e.Type {
	case tapedeck.MessageAdded:
		if key, step, d := spanOf(e); step != 0 {
			m.runs.end(e.Invocation, key)
			if s := m.open[key]; s != nil {
				s.body = []byte(d.Delta)
				m.bytes += len(d.Delta)
			}
		}
		return wholeMessages(named, out), nil
	case tapedeck.MessagesSnapshot:
		return wholeMessages(named, out), nil
	case tapedeck.ToolCallResult:
		return toolResult(named, out), nil
	case tapedeck.RunStarted, tapedeck.RunFinished:
		m.runs.note(e)
		return out, nil
	case tapedeck.RunError:
		m.runs.note(e)
		return m.leftOpen(ctx, e, names, out)
	}
	switch key, step, d := spanOf(e); step {
	case spanBegins:
		s := &span{begin: e.Offset, invocation: e.Invocation, head: d}
		if err := m.continued(ctx, key, e, s); err != nil {
			return out, err
		}
		m.open[key] = s
		m.bytes += 64 + len(e.Data) + len(s.body)
	case spanContinues:
		if s := m.open[key]; s != nil { // otherwise it began before this reader, see finish
			s.body = append(s.body, d.Delta...)
			m.bytes += len(d.Delta)
		}
	case spanEnds:
		m.runs.end(e.Invocation, key)
		s, err := m.finish(ctx, key, e)
		if s == nil || err != nil {
			return out, err
		}
		return append(out, s.encode(key, e, names)), nil
	}
	return out, nil
}

// jumped shows what a jump changes.
func (m *messages) jumped(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	if e.Type == tapedeck.AttemptSuperseded {
		return m.again(ctx, e, out)
	}
	return m.jump(ctx, m.session, e, messageEntities, out)
}

// isShown reports whether the view shows something for an event.
func isShown(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.MessageAdded, tapedeck.ToolCallResult, tapedeck.RunError:
		return true
	}
	return spanEvents[e.Type].step == spanEnds
}

// finish returns the span that e ends, nil if it never began.
func (m *messages) finish(ctx context.Context, key spanKey, e *tapedeck.Event) (*span, error) {
	s := m.open[key]
	if s == nil {
		return m.lookBack(ctx, key, e)
	}
	delete(m.open, key)
	if len(m.open) == 0 {
		m.bytes = 0
	}
	if e.Offset-s.begin > maxSpan {
		return nil, nil // as if lookBack had not found it
	}
	return s, nil
}

// lookBack collects the span that e ends from the events before it.
func (m *messages) lookBack(ctx context.Context, key spanKey, e *tapedeck.Event) (*span, error) {
	var deltas []payload.Piece
	replaced := false // what is older does not count
	for from := e.Offset; from > 0 && e.Offset-from < maxSpan; {
		p, err := m.Log.Read(ctx, m.session, tapedeck.Range{From: from, Reverse: true})
		if err != nil {
			return nil, err
		}
		for _, r := range p.Records {
			before, err := r.Event()
			if err != nil {
				return nil, err
			}
			k, step, d := spanOf(&before)
			switch {
			case e.Offset-r.Offset > maxSpan:
				return nil, nil
			case k != key: // another span
			case step == spanIsWhole && !replaced:
				deltas, replaced = append(deltas, d.Delta), true
			case step == spanContinues && !replaced:
				deltas = append(deltas, d.Delta)
			case step == spanBegins:
				s := &span{begin: r.Offset, head: d}
				if err := m.earlier(ctx, key, &before, s); err != nil {
					return nil, err
				}
				if replaced {
					s.body, s.again = nil, true
				}
				for _, d := range slices.Backward(deltas) {
					s.body = append(s.body, d...)
				}
				return s, nil
			}
		}
		from = p.Next
	}
	return nil, nil
}

// idOf returns the id of a span.
func idOf(key spanKey, role string, names *aguiwire.Naming) string {
	switch key.kind {
	case toolSpan:
		return names.Call(key.id)
	case reasoningSpan:
		return names.Message(aguiwire.Reasoning, key.id)
	}
	return names.Message(aguiwire.KindOf(role), key.id)
}

// encode returns the change that inserts s, which e ends.
func (s *span) encode(key spanKey, e *tapedeck.Event, names *aguiwire.Naming) []byte {
	id := idOf(key, cmp.Or(s.head.Role, payload.RoleAssistant), names)
	if key.kind == toolSpan {
		return encodeChange(e, "insert", "toolCall", id, toolCall{
			ID: id, Type: "function", Parent: names.Message(aguiwire.Agent, s.head.Parent),
			Function: toolFunction{s.head.ToolName, payload.Whole(string(s.body))},
		})
	}
	role := s.head.Role
	switch {
	case key.kind == reasoningSpan:
		role = "reasoning"
	case role == "":
		role = "assistant"
	}
	operation := "insert"
	if s.again {
		operation = "update"
	}
	return encodeChange(e, operation, "message", id, message{ID: id, Role: role, Name: s.head.Name, Content: payload.Whole(string(s.body))})
}

type message struct {
	ID         string `json:"id"`
	Role       string `json:"role"`
	Name       string `json:"name,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	Content    any    `json:"content"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Parent   string       `json:"parentMessageId,omitempty"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// wholeMessages shows messages that were appended as a whole, unchanged.
func wholeMessages(e *tapedeck.Event, out [][]byte) [][]byte {
	var d struct {
		Message  json.RawMessage   `json:"message"`
		Messages []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return out
	}
	if e.Type == tapedeck.MessageAdded {
		d.Messages = []json.RawMessage{d.Message}
	}
	for _, raw := range d.Messages {
		var m struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &m) == nil && m.ID != "" {
			out = append(out, encodeChange(e, "insert", "message", m.ID, raw))
		}
	}
	return out
}

// toolResult shows the answer of a tool.
func toolResult(e *tapedeck.Event, out [][]byte) [][]byte {
	var d struct {
		MessageID  string          `json:"messageId"`
		ToolCallID string          `json:"toolCallId"`
		Content    json.RawMessage `json:"content"`
	}
	if json.Unmarshal(e.Data, &d) != nil || d.MessageID == "" {
		return out
	}
	return append(out, encodeChange(e, "insert", "message", d.MessageID,
		message{ID: d.MessageID, Role: "tool", ToolCallID: d.ToolCallID, Content: d.Content}))
}
