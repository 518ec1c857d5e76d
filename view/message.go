package view

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A Message is something said: by a person, by the agent, or to itself
// (reasoning). Its status is running while it is streamed, then complete; if
// its run ended in the middle of it, cancelled or interrupted.
//
// An id names one message of a thread and an invocation. A whole message of an
// id that is there takes its place; a message that is streamed under an id that
// another invocation has used is a new one.
type Message struct {
	Item
	ID         string          `json:"id"`
	Role       string          `json:"role"` // user, assistant, system, developer, tool, reasoning or activity
	Name       string          `json:"name,omitempty"`
	Text       string          `json:"text"`                    // all of its text, so far
	Parts      json.RawMessage `json:"parts,omitempty"`         // its content, if that is more than text: AG-UI's parts
	ToolCallID string          `json:"tool_call_id,omitempty"`  // role tool: the call it answers
	Activity   string          `json:"activity_type,omitempty"` // role activity
	Content    json.RawMessage `json:"content,omitempty"`       // role activity: an object
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

type message struct {
	Message
	text    strings.Builder // Message.Text, growing
	doc     state           // Message.Content of an activity
	calls   []*call         // those that it made
	gone    bool            // a MESSAGES_SNAPSHOT has it no more
	settled bool            // see Window; known only as the maker of calls that have not
}

// reasoning and activity are the roles that a MESSAGES_SNAPSHOT need not restate.
const (
	reasoning = "reasoning"
	activity  = "activity"
)

func (c *Conversation) textStart(l *lane, e *tapedeck.Event) bool {
	var d struct {
		MessageID string          `json:"messageId"`
		Role      string          `json:"role"`
		Name      string          `json:"name"`
		Subagent  string          `json:"subagentRunId"`
		Metadata  json.RawMessage `json:"metadata"`
	}
	if !decode(e, &d) || d.MessageID == "" {
		return false
	}
	m, ok := l.message[d.MessageID]
	if ok && m.Invocation == e.Invocation {
		m.reopen(tapedeck.StatusRunning)
		l.work(e.Invocation).messages[m] = struct{}{}
		return true
	}
	m = c.stream(l, e, d.MessageID)
	m.Name, m.Subagent, m.Metadata = d.Name, d.Subagent, d.Metadata
	if d.Role != "" {
		l.setRole(m, d.Role)
	}
	return true
}

// stream adds a message whose text is to come.
func (c *Conversation) stream(l *lane, e *tapedeck.Event, id string) *message {
	m := &message{Message: Message{Item: item(l, e, tapedeck.StatusRunning), ID: id}}
	role := "assistant"
	if strings.HasPrefix(e.Type, "REASONING_") {
		role = reasoning
	}
	l.work(e.Invocation).messages[m] = struct{}{}
	c.add(l, m, role, e.Offset)
	return m
}

func (c *Conversation) textContent(l *lane, e *tapedeck.Event) bool {
	id, delta, ok := messageDelta.decode(e.Data)
	if !ok {
		return false
	}
	m, ok := l.message[string(id)]
	if !ok { // its start was not given to us; no text is lost
		m = c.stream(l, e, string(id))
	}
	m.text.Write(delta)
	return true
}

func (c *Conversation) textEnd(l *lane, e *tapedeck.Event) bool {
	var d struct {
		MessageID string          `json:"messageId"`
		Metadata  json.RawMessage `json:"metadata"`
	}
	if !decode(e, &d) {
		return false
	}
	if m, ok := l.message[d.MessageID]; ok {
		l.asks(m)
		m.end(e, closedStatus(d.Metadata))
		l.settle(m.Invocation, m, nil)
	}
	return true
}

// closedStatus returns the status of a message that an event with this metadata
// ends. When the engine ends a run in the middle of a message, it ends the
// message, too, and notes the status of the run in the mark "closed". A failed
// run interrupts its message. Without a readable mark the message is complete.
func closedStatus(metadata json.RawMessage) tapedeck.Status {
	var d struct {
		Tapedeck struct {
			Closed tapedeck.Status `json:"closed"`
		} `json:"tapedeck"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &d) != nil {
		return tapedeck.StatusComplete
	}
	switch d.Tapedeck.Closed {
	case tapedeck.StatusCancelled:
		return tapedeck.StatusCancelled
	case tapedeck.StatusInterrupted, tapedeck.StatusFailed:
		return tapedeck.StatusInterrupted
	}
	return tapedeck.StatusComplete
}

// add adds m to the conversation, in the role.
func (c *Conversation) add(l *lane, m *message, role string, at int64) {
	l.messages.add(m)
	l.Messages++
	if m.ID != "" {
		l.message[m.ID] = m
	}
	m.Role = role
	l.count(m, 1)
	g := groupOf(role)
	l.groups[g] = append(l.groups[g], m)
	c.settleMessages(l, at)
}

// setRole changes the role of m, which was added last.
func (l *lane) setRole(m *message, role string) {
	if from, to := groupOf(m.Role), groupOf(role); from != to {
		l.groups[from] = l.groups[from][:len(l.groups[from])-1]
		l.groups[to] = append(l.groups[to], m)
	}
	l.count(m, -1)
	m.Role = role
	l.count(m, 1)
}

// Groups of messages that a MESSAGES_SNAPSHOT restates together.
const (
	spokenGroup = iota // all but the next two
	reasoningGroup
	activityGroup
	groups
)

func groupOf(role string) int {
	switch role {
	case reasoning:
		return reasoningGroup
	case activity:
		return activityGroup
	}
	return spokenGroup
}

// drop takes a message out of the conversation, with the calls that it made.
func (l *lane) drop(m *message) {
	m.gone = true
	l.Messages--
	l.count(m, -1)
	l.messages.lose(func(m *message) bool { return m.gone })
	l.forget(m)
	l.settle(m.Invocation, m, nil)
	for _, k := range m.calls {
		if !k.gone && k.maker == m {
			l.dropCall(k)
		}
	}
}

func (l *lane) dropCall(k *call) {
	k.gone = true
	l.countCall(k, -1)
	l.calls.lose(func(k *call) bool { return k.gone })
	if l.call[k.ID] == k {
		delete(l.call, k.ID)
	}
	l.settle(k.Invocation, nil, k)
}

// forget makes the id of m that of no message.
func (l *lane) forget(m *message) {
	if l.message[m.ID] == m {
		delete(l.message, m.ID)
	}
}
