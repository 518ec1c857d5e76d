package view

import (
	"encoding/json"
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
	c.put(l, e, &d.Message)
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
	restated := map[*message]bool{}
	groups := map[*[]*message]bool{&l.spoken: true}
	for i := range d.Messages {
		m := c.put(l, e, &d.Messages[i])
		restated[m] = true
		groups[l.group(m.Role)] = true
	}
	for group := range groups {
		kept := (*group)[:0]
		for _, m := range *group {
			if restated[m] {
				kept = append(kept, m)
			} else {
				c.drop(l, m)
			}
		}
		clear((*group)[len(kept):])
		*group = kept
	}
	return true
}

// put puts a whole message into the conversation: in the place of that of its
// id, or last.
func (c *Conversation) put(l *lane, e *tapedeck.Event, w *wireMessage) *message {
	m, ok := l.messages[w.ID]
	if !ok || l.group(m.Role) != l.group(w.Role) {
		m = &message{Message: Message{Item: item(l, e, tapedeck.StatusComplete), ID: w.ID}}
		m.Subagent = w.Subagent
		m.end(e, tapedeck.StatusComplete)
		c.add(l, m, w.Role)
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
