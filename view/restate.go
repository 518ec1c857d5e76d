package view

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A wireMessage is a whole AG-UI message. The content of an activity is an
// object. The content of other messages is a string or a list of parts.
type wireMessage struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"toolCallId"`
	Error      json.RawMessage `json:"error"`
	Activity   string          `json:"activityType"`
	Subagent   string          `json:"subagentRunId"`
	Metadata   json.RawMessage `json:"metadata"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"toolCalls"`
}

func (c *Conversation) messageAdded(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Message wireMessage `json:"message"`
	}
	if !decode(e, &d) {
		return false
	}
	if c.makes(l, e, &d.Message) {
		return true
	}
	m := c.putMessage(l, e, &d.Message)
	if digest := payload.PromptOf(m.Role, m.Metadata); digest != "" {
		l.Prompt = &Prompt{Digest: digest, Offset: m.Offset}
	}
	for _, t := range d.Message.ToolCalls {
		if k, ok := l.call[t.ID]; ok {
			l.planByTool(k, e)
		}
	}
	if !l.Status.Begun() && e.Invocation != "" && d.Message.Role == payload.RoleUser {
		l.Status = tapedeck.StatusPending
	}
	return true
}

// makes folds the tool_call of a context that a program keeps. Its call is one of an earlier
// message, so it is no message of its own.
func (c *Conversation) makes(l *lane, e *tapedeck.Event, w *wireMessage) bool {
	step := tapedeck.MetaOf(w.Metadata)
	if step.Step != CallEvent || step.Call == "" {
		return false
	}
	if k, ok := l.call[step.Call]; ok {
		k.Step.Offset, k.Step.At, k.Step.Call = new(e.Offset), &Time{e.Time}, step.Given
	}
	return true
}

// messagesSnapshot restates the messages of a thread as an AG-UI client does. A
// message that exists keeps its place, a new one is added at the end, and one
// that is missing in the snapshot is dropped. Reasoning and activities are
// dropped only if the snapshot has some of their kind.
func (c *Conversation) messagesSnapshot(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Messages []wireMessage `json:"messages"`
	}
	if !decode(e, &d) {
		return false
	}
	restated := map[*message]bool{}
	said := make([]*message, 0, len(d.Messages))
	has := [groups]bool{spokenGroup: true}
	l.restating = true
	for i := range d.Messages {
		m := c.putMessage(l, e, &d.Messages[i])
		restated[m] = true
		said = append(said, m)
		has[groupOf(m.Role)] = true
	}
	lowest := e.Offset
	if l.earlier() > 0 {
		lowest = l.reorder(said, e.Offset)
	}
	for g := range has {
		if has[g] {
			l.restate(g, restated, pastGroup{Floor: e.Offset, Lowest: lowest})
		}
	}
	l.keepPrompt(restated)
	l.restating = false
	c.settleMessages(l, e.Offset)
	c.settleCalls(l, e.Offset)
	return true
}

// keepPrompt clears the system text of the model, unless a restated message has
// it.
func (l *lane) keepPrompt(restated map[*message]bool) {
	if l.Prompt == nil {
		return
	}
	for m := range restated {
		if m.Offset == l.Prompt.Offset && payload.PromptOf(m.Role, m.Metadata) == l.Prompt.Digest {
			return
		}
	}
	l.Prompt = nil
}

// reorder places messages that a MESSAGES_SNAPSHOT repeats after they had
// settled. Each is placed just before the next message of the snapshot that has
// not settled, and gets its offset, because pages are divided by offsets.
// Without such a message it comes last. reorder returns the lowest of these
// offsets.
func (l *lane) reorder(said []*message, at int64) (lowest int64) {
	lowest = at
	moved, before := map[*message]bool{}, map[*message][]*message{} // before: what is placed before a message, from the last to the first
	var next *message
	for _, m := range slices.Backward(said) {
		switch {
		case moved[m]:
		case m.Offset < at:
			next = m
		case next != nil:
			m.Offset, moved[m] = next.Offset, true
			lowest = min(lowest, m.Offset)
			before[next] = append(before[next], m)
		}
	}
	items := make([]*message, 0, len(l.messages.items))
	for _, m := range l.messages.items {
		for _, b := range slices.Backward(before[m]) {
			items = append(items, b)
		}
		if !moved[m] {
			items = append(items, m)
		}
	}
	l.messages.items = items
	return lowest
}

// restate drops the messages of a group that are not restated, settled ones
// included, with the calls that they made.
func (l *lane) restate(group int, restated map[*message]bool, past pastGroup) {
	for _, k := range l.calls.items {
		if !k.removed && k.maker != nil && k.maker.settled && groupOf(k.maker.Role) == group {
			l.dropCall(k)
		}
	}
	kept := l.groups[group][:0]
	for _, m := range l.groups[group] {
		if restated[m] {
			kept = append(kept, m)
		} else {
			l.drop(m)
		}
	}
	clear(l.groups[group][len(kept):])
	l.groups[group] = kept
	l.Messages -= l.past[group].Count
	l.past[group] = past
}

// putMessage adds a whole message, or replaces the message that has its name.
func (c *Conversation) putMessage(l *lane, e *tapedeck.Event, w *wireMessage) *message {
	m, ok := l.message[nameOf(w.Role, w.ID)]
	if !ok {
		m = &message{Message: Message{Item: newItem(l, e, tapedeck.StatusComplete), ID: w.ID}}
		m.Subagent = w.Subagent
		m.end(e, tapedeck.StatusComplete)
		c.addMessage(l, m, w.Role, e.Offset)
	}
	m.Role, m.Name, m.Metadata, m.ToolCallID = w.Role, w.Name, w.Metadata, w.ToolCallID
	m.text.Reset()
	m.Parts = nil
	if w.Role == activity {
		m.Activity, m.doc = w.Activity, state{raw: w.Content}
	} else {
		text, parts := pieces(w.Content)
		m.text.WriteString(string(text))
		m.Parts = parts
		l.noteRequest(m)
	}
	step := tapedeck.MetaOf(w.Metadata)
	for i, t := range w.ToolCalls {
		_, known := l.call[t.ID]
		k := c.callOf(l, e, t.ID)
		k.Name = t.Function.Name
		k.setMaker(m)
		k.restate(e, t.Function.Arguments)
		if !known {
			k.Step.Uncalled = step.Step == AssistantMessage
		}
		if step.Step == CallEvent {
			k.Step.Call = step.Given
		}
		if i < len(step.IDs) {
			k.Step.ID = step.IDs[i]
		}
	}
	if w.Role == "tool" && w.ToolCallID != "" {
		a := answer{ToolCallID: w.ToolCallID, MessageID: w.ID, Content: w.Content, Error: w.Error, Metadata: w.Metadata}
		c.answer(l, e, a)
	}
	return m
}

// content splits the content of a message into its text and, if it is not a
// plain string, the content itself.
func content(raw json.RawMessage) (text string, parts json.RawMessage) {
	pieces, parts := pieces(raw)
	return pieces.Whole(), parts
}

// pieces is [content] for a message that may go on.
func pieces(raw json.RawMessage) (text payload.Piece, parts json.RawMessage) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []struct {
		Text payload.Piece `json:"text"`
	}
	var b strings.Builder
	if jsonobj.Unpack(raw, &list) {
		for _, p := range list {
			b.WriteString(string(p.Text))
		}
	}
	return payload.Piece(b.String()), raw
}
