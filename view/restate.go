package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A wireMessage is a whole AG-UI message. The content of an activity is an
// object, that of all others a string or parts.
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
	m := c.put(l, e, &d.Message)
	if digest := tapedeck.PromptOf(m.Role, m.Metadata); digest != "" {
		l.Prompt = &Prompt{Digest: digest, Offset: m.Offset}
	}
	if !l.Status.Begun() && e.Invocation != "" && d.Message.Role == tapedeck.RoleUser {
		l.Status = tapedeck.StatusPending
	}
	return true
}

// messagesSnapshot restates the messages of a thread, as an AG-UI client does:
// a message that is there keeps its place, a new one comes last, and one that is
// not restated goes; except that reasoning and activity go only if the snapshot
// has some of their kind.
func (c *Conversation) messagesSnapshot(l *lane, e *tapedeck.Event) bool {
	var d struct {
		Messages []wireMessage `json:"messages"`
	}
	if !decode(e, &d) {
		return false
	}
	restated := map[*message]int{} // and where in the snapshot
	has := [groups]bool{spokenGroup: true}
	l.restating = true
	for i := range d.Messages {
		m := c.put(l, e, &d.Messages[i])
		restated[m] = i
		has[groupOf(m.Role)] = true
	}
	if l.earlier() > 0 {
		l.reorder(restated)
	}
	for g := range has {
		if has[g] {
			l.restate(g, restated, e.Offset)
		}
	}
	l.keepPrompt(restated)
	l.restating = false
	c.settleMessages(l, e.Offset)
	c.settleCalls(l, e.Offset)
	return true
}

// keepPrompt forgets the system text of the model if the messages that are
// restated do not have it.
func (l *lane) keepPrompt(restated map[*message]int) {
	if l.Prompt == nil {
		return
	}
	for m := range restated {
		if m.Offset == l.Prompt.Offset && tapedeck.PromptOf(m.Role, m.Metadata) == l.Prompt.Digest {
			return
		}
	}
	l.Prompt = nil
}

// reorder brings what is restated into the order of the snapshot, where it says
// again what has settled: as that begins anew, it would come last otherwise.
func (l *lane) reorder(restated map[*message]int) {
	inOrder := func(list []*message) {
		var places []int
		var messages []*message
		for i, m := range list {
			if _, ok := restated[m]; ok && !m.gone {
				places, messages = append(places, i), append(messages, m)
			}
		}
		slices.SortFunc(messages, func(a, b *message) int { return cmp.Compare(restated[a], restated[b]) })
		for i, at := range places {
			list[at] = messages[i]
		}
	}
	inOrder(l.messages.items)
	for _, g := range l.groups {
		inOrder(g)
	}
}

// restate drops the messages of a group that are not restated, those that have
// settled among them, with the calls that they made.
func (l *lane) restate(group int, restated map[*message]int, at int64) {
	for _, k := range l.calls.items {
		if !k.gone && k.maker != nil && k.maker.settled && groupOf(k.maker.Role) == group {
			l.dropCall(k)
		}
	}
	kept := l.groups[group][:0]
	for _, m := range l.groups[group] {
		if _, ok := restated[m]; ok {
			kept = append(kept, m)
		} else {
			l.drop(m)
		}
	}
	clear(l.groups[group][len(kept):])
	l.groups[group] = kept
	l.Messages -= l.past[group].Count
	l.past[group] = pastGroup{Floor: at}
}

// put puts a whole message into the conversation: in the place of that of its
// id, or last.
func (c *Conversation) put(l *lane, e *tapedeck.Event, w *wireMessage) *message {
	m, ok := l.message[w.ID]
	if !ok || groupOf(m.Role) != groupOf(w.Role) {
		m = &message{Message: Message{Item: item(l, e, tapedeck.StatusComplete), ID: w.ID}}
		m.Subagent = w.Subagent
		m.end(e, tapedeck.StatusComplete)
		c.add(l, m, w.Role, e.Offset)
	}
	m.Role, m.Name, m.Metadata, m.ToolCallID = w.Role, w.Name, w.Metadata, w.ToolCallID
	m.text.Reset()
	m.Parts = nil
	if w.Role == activity {
		m.Activity, m.doc = w.Activity, state{raw: w.Content}
	} else {
		text, parts := content(w.Content)
		m.text.WriteString(text)
		m.Parts = parts
	}
	for _, t := range w.ToolCalls {
		k := c.known(l, e, t.ID)
		k.Name = t.Function.Name
		k.madeBy(m)
		k.restate(t.Function.Arguments)
	}
	if w.Role == "tool" && w.ToolCallID != "" {
		a := answer{ToolCallID: w.ToolCallID, MessageID: w.ID, Content: w.Content, Error: w.Error}
		_ = json.Unmarshal(w.Metadata, &a.Metadata) // of another shape it says nothing
		c.answer(l, e, a)
	}
	return m
}

// content divides the content of a message into its text and, if it is not
// simply text, what it was.
func content(raw json.RawMessage) (text string, parts json.RawMessage) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []struct {
		Text string `json:"text"`
	}
	var b strings.Builder
	if json.Unmarshal(raw, &list) == nil {
		for _, p := range list {
			b.WriteString(p.Text)
		}
	}
	return b.String(), raw
}
