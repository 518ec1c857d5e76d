package ws

import (
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

const (
	roleUser      = payload.RoleUser
	roleAssistant = payload.RoleAssistant
	roleReasoning = payload.RoleReasoning
)

// A replayEncoder turns the events of a session, in order, into messages of
// tapedeck.replay.v1. It remembers what is open.
type replayEncoder struct {
	options  replayOptions
	elements *elements
	open     map[openKey]*openText
	calls    map[openKey]*openCall
	running  map[string]bool  // the invocations of open runs
	names    *aguiwire.Naming // of the thread of the event that is encoded
}

// An openKey names a text, a thought or a call of a thread.
type openKey struct {
	thread, id string
	thought    bool
}

// textKey returns the key of the text or thought of an event. Both may have the same id.
func textKey(e *tapedeck.Event, d *parts) openKey {
	return openKey{e.Thread, d.MessageID, strings.HasPrefix(e.Type, "REASONING_")}
}

func byAgent(d *parts) bool { return d.Role == "" || d.Role == roleAssistant }

// hides reports whether the client does not want a text: by default those that were told to
// the agent.
func (r *replayEncoder) hides(told bool) bool { return told && !r.options.user }

func callKey(e *tapedeck.Event, id string) openKey { return openKey{thread: e.Thread, id: id} }

// An openText is a text that grows. A text of the agent that has ended is kept, without its
// words, until its run ends, because the run may open it again.
type openText struct {
	invocation string
	thought    bool
	told       bool // it is not the agent's own
	ended      bool
	text       strings.Builder
}

// An openCall is a tool call without its result.
type openCall struct {
	invocation, name string
	args             strings.Builder
	announced        bool
}

// begin sets what is open as of a snapshot of all threads.
func (r *replayEncoder) begin(s *view.Snapshot) {
	r.open, r.calls, r.running = make(map[openKey]*openText), make(map[openKey]*openCall), make(map[string]bool)
	for i := range s.Runs {
		if s.Runs[i].Status == tapedeck.StatusRunning {
			r.running[s.Runs[i].Invocation] = true
		}
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		o := &openText{invocation: m.Invocation, thought: m.Role == roleReasoning, told: m.Role != roleAssistant, ended: m.Status != tapedeck.StatusRunning}
		switch {
		case !o.ended:
			o.text.WriteString(string(m.Pieces()))
		case m.Role != roleAssistant || !r.running[m.Invocation]:
			continue // nothing opens it again
		}
		r.open[openKey{m.Thread, m.ID, o.thought}] = o
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Result == nil && (c.Status == tapedeck.StatusRunning || c.Status == tapedeck.StatusPending) {
			o := &openCall{invocation: c.Invocation, name: c.Name, announced: isMade(c)}
			o.args.WriteString(string(c.Pieces()))
			r.calls[openKey{thread: c.Thread, id: c.ID}] = o
		}
	}
}

// reopens reports whether e opens a text again that its run has ended, as after a restart
// of the server in the middle of the text.
func (r *replayEncoder) reopens(e *tapedeck.Event) (k openKey, ok bool) {
	if e.Type != tapedeck.TextMessageStart || r.elements.of(e.ThreadName()).element == "" {
		return k, false
	}
	var d parts
	_ = e.Unpack(&d) // see encode
	k = textKey(e, &d)
	o := r.open[k]
	return k, o != nil && o.ended && o.invocation == e.Invocation && byAgent(&d)
}

// replaces reports whether e is a whole message that replaces a text, which the protocol
// cannot say.
func (r *replayEncoder) replaces(e *tapedeck.Event, names *aguiwire.Naming) bool {
	var d payload.MessageAdded
	if e.Type != tapedeck.MessageAdded || !e.Unpack(&d) || d.Message.Role != roleUser && d.Message.Role != roleAssistant {
		return false
	}
	return !r.hides(d.Message.Role != roleAssistant) && names.Has(aguiwire.KindOf(d.Message.Role), d.Message.ID)
}

// restore gives a text that is opened again the words that it had before.
func (r *replayEncoder) restore(k openKey, s *view.Snapshot) {
	o := r.open[k]
	for i := range s.Messages {
		if m := &s.Messages[i]; m.ID == k.id && m.Invocation == o.invocation && m.Role == roleAssistant {
			o.text.Reset()
			o.text.WriteString(string(m.Pieces()))
		}
	}
}

// forget forgets what is open in the threads that a jump reverts.
func (r *replayEncoder) forget(j *tapedeck.Jump) {
	maps.DeleteFunc(r.open, func(k openKey, _ *openText) bool { return j.Reverts(k.thread) })
	maps.DeleteFunc(r.calls, func(k openKey, _ *openCall) bool { return j.Reverts(k.thread) })
}

// parts are the members of the data that the protocol needs.
type parts struct {
	MessageID    string        `json:"messageId"`
	Role         string        `json:"role"`
	Delta        payload.Piece `json:"delta"`
	ToolCallID   string        `json:"toolCallId"`
	ToolCallName string        `json:"toolCallName"`
}

// encode returns the messages that an event becomes. names has the ids of what its thread
// has before it.
func (r *replayEncoder) encode(e *tapedeck.Event, names *aguiwire.Naming) []*replayMessage {
	at := r.elements.of(e.ThreadName())
	if at.element == "" {
		return nil
	}
	r.names = names
	names.Note(e)
	var d parts
	_ = e.Unpack(&d) // members of a wrong shape count as absent
	out := r.messages(e, &d)
	for _, m := range out {
		m.ElementID, m.ThreadID, m.Index, m.Timestamp = at.element, threadShown(e.Thread), at.index, timestamp(e.Time)
	}
	return out
}

func (r *replayEncoder) messages(e *tapedeck.Event, d *parts) []*replayMessage {
	switch e.Type {
	case tapedeck.RunStarted:
		r.running[e.Invocation] = true
	case tapedeck.MessageAdded:
		return r.whole(e)
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart:
		return r.start(e, d)
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent:
		return r.grow(e, d)
	case tapedeck.TextMessageEnd, tapedeck.ReasoningMessageEnd:
		return r.endText(textKey(e, d))
	case tapedeck.ToolCallStart:
		r.calls[callKey(e, d.ToolCallID)] = &openCall{invocation: e.Invocation, name: d.ToolCallName}
	case tapedeck.ToolCallArgs:
		if c := r.calls[callKey(e, d.ToolCallID)]; c != nil {
			c.args.WriteString(string(d.Delta))
		}
	case tapedeck.ToolCallEnd:
		return r.announce(callKey(e, d.ToolCallID))
	case tapedeck.ToolCallResult:
		return r.result(callKey(e, d.ToolCallID), textOf(e))
	case tapedeck.RunFinished, tapedeck.RunError:
		return r.endRun(e)
	}
	return nil
}

func (r *replayEncoder) start(e *tapedeck.Event, d *parts) []*replayMessage {
	k := textKey(e, d)
	if o := r.open[k]; o != nil && o.ended && o.invocation == e.Invocation && !k.thought && byAgent(d) {
		o.ended = false
	} else {
		r.open[k] = &openText{invocation: e.Invocation, thought: k.thought, told: !byAgent(d)}
	}
	if k.thought || r.hides(!byAgent(d)) {
		return nil
	}
	if d.Role == "" {
		d.Role = roleAssistant
	}
	return []*replayMessage{{Type: typeTextStart, MessageID: r.nameOf(!byAgent(d), d.MessageID), Role: d.Role}}
}

// nameOf returns the id that a text has for the client.
func (r *replayEncoder) nameOf(told bool, id string) string {
	if told {
		return r.names.Message(aguiwire.Told, id)
	}
	return r.names.Message(aguiwire.Agent, id)
}

// grow adds to a text. A thought is sent as a whole when it ends.
func (r *replayEncoder) grow(e *tapedeck.Event, d *parts) []*replayMessage {
	o := r.open[textKey(e, d)]
	if o == nil || o.ended {
		return nil
	}
	if r.hides(o.told) && !o.thought {
		return nil
	}
	o.text.WriteString(string(d.Delta))
	if o.thought {
		return nil
	}
	return []*replayMessage{r.piece(r.nameOf(o.told, d.MessageID), d.Delta, payload.Piece(o.text.String()))}
}

// piece returns a piece of a text in the forms that the client wants.
func (r *replayEncoder) piece(id string, delta, content payload.Piece) *replayMessage {
	m := &replayMessage{Type: typeTextContent, MessageID: id}
	if r.options.delta {
		m.Delta = &delta
	}
	if r.options.content {
		m.Content = &content
	}
	return m
}

func (r *replayEncoder) endText(k openKey) []*replayMessage {
	o := r.open[k]
	switch {
	case o == nil || o.ended:
		return nil
	case o.thought:
		delete(r.open, k)
		return []*replayMessage{{Type: typeThinking, Message: payload.Whole(o.text.String())}}
	}
	if o.ended, o.text = true, (strings.Builder{}); o.told {
		delete(r.open, k)
	}
	if r.hides(o.told) {
		return nil
	}
	return []*replayMessage{{Type: typeTextEnd, MessageID: r.nameOf(o.told, k.id)}}
}

// announce announces a call whose arguments are complete.
func (r *replayEncoder) announce(k openKey) []*replayMessage {
	c := r.calls[k]
	if c == nil || c.announced {
		return nil
	}
	c.announced = true
	return []*replayMessage{{Type: typeToolStart, ToolCallID: r.names.Call(k.id), ToolName: c.name, ToolArgs: argsOf(payload.Whole(c.args.String()))}}
}

// result ends a call. The name of a call that the encoder has not seen is not known.
func (r *replayEncoder) result(k openKey, text string) []*replayMessage {
	out := r.announce(k)
	m := &replayMessage{Type: typeToolEnd, ToolCallID: r.names.Call(k.id), Result: valueOf(text)}
	if c := r.calls[k]; c != nil {
		m.ToolName = c.name
		delete(r.calls, k)
	}
	return append(out, m)
}

// endRun ends the texts that a run has left open, and its calls if nothing answers them any
// more. The calls of a run that ends well may still be answered.
func (r *replayEncoder) endRun(e *tapedeck.Event) (out []*replayMessage) {
	delete(r.running, e.Invocation)
	var d struct {
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = e.Unpack(&d) // see encode
	if e.Type == tapedeck.RunError || d.Outcome.Type == payload.OutcomeCancelled {
		for _, k := range slices.SortedFunc(maps.Keys(r.calls), func(a, b openKey) int { return strings.Compare(a.id, b.id) }) {
			if c := r.calls[k]; k.thread == e.Thread && c.invocation == e.Invocation && c.announced {
				out = append(out, r.result(k, "")...)
			}
		}
	}
	for k, o := range r.open {
		if k.thread == e.Thread && o.invocation == e.Invocation {
			out = append(out, r.endText(k)...)
			delete(r.open, k)
		}
	}
	return out
}

// whole returns the messages of a message that came as a whole.
func (r *replayEncoder) whole(e *tapedeck.Event) (out []*replayMessage) {
	var d payload.MessageAdded
	if !e.Unpack(&d) {
		return nil
	}
	m := &d.Message
	text := m.Text()
	switch m.Role {
	case roleReasoning:
		return []*replayMessage{{Type: typeThinking, Message: text}}
	case payload.RoleTool:
		return r.result(callKey(e, m.ToolCallID), text)
	case roleUser, roleAssistant:
	default:
		return nil
	}
	if m.Role == roleAssistant && r.running[e.Invocation] { // its run may open it again
		r.open[openKey{thread: e.Thread, id: m.ID}] = &openText{invocation: e.Invocation, ended: true}
	}
	if name := r.nameOf(m.Role != roleAssistant, m.ID); text != "" && !r.hides(m.Role != roleAssistant) {
		out = append(out, &replayMessage{Type: typeTextStart, MessageID: name, Role: m.Role},
			r.piece(name, payload.Piece(text), payload.Piece(text)), &replayMessage{Type: typeTextEnd, MessageID: name})
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		k, o := callKey(e, c.ID), &openCall{invocation: e.Invocation, name: c.Function.Name}
		o.args.WriteString(c.Function.Arguments)
		r.calls[k] = o
		out = append(out, r.announce(k)...)
	}
	return out
}

// textOf returns the text of a tool's result.
func textOf(e *tapedeck.Event) string {
	var d payload.ToolCallResult
	if !e.Unpack(&d) {
		return ""
	}
	m := payload.Message{Role: payload.RoleTool, Content: d.Content}
	return m.Text()
}
