package view

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Message is a message of a user, an agent or a tool, or the reasoning or an
// activity of an agent. Its status is running while it is streamed, then
// complete. If its run ends before it does, it becomes cancelled or
// interrupted.
//
// An id names one message of each kind in a thread and an invocation: one of the
// agent, one that the agent was told, its reasoning, an activity. A whole message
// replaces the one of its kind that has its id. A streamed message whose id another
// invocation has used is a new message.
type Message struct {
	Item
	ID         string          `json:"id"`
	Role       string          `json:"role"` // user, assistant, system, developer, tool, reasoning or activity
	Name       string          `json:"name,omitempty"`
	Text       string          `json:"text"`                    // its text so far
	Parts      json.RawMessage `json:"parts,omitempty"`         // AG-UI's parts, if the content is not plain text
	ToolCallID string          `json:"tool_call_id,omitempty"`  // role tool: the call that it answers
	Activity   string          `json:"activity_type,omitempty"` // role activity
	Content    json.RawMessage `json:"content,omitempty"`       // role activity: an object
	Metadata   json.RawMessage `json:"metadata,omitempty"`

	Half payload.Piece `json:"-"` // half of a character, with which the text ends while it is streamed; not in Text
}

// Pieces returns the text with Half.
func (m *Message) Pieces() payload.Piece { return payload.Piece(m.Text) + m.Half }

type message struct {
	Message
	text    strings.Builder // Message.Text while it grows: the pieces
	doc     state           // Message.Content of an activity
	calls   []*call         // the calls that it made
	removed bool            // a MESSAGES_SNAPSHOT has removed it
	settled bool            // see Window; the message is kept only as the maker of calls that have not settled
}

// A MESSAGES_SNAPSHOT may leave out messages of these roles without removing
// them.
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
	role := roleOf(e)
	if role == payload.RoleAssistant && d.Role != "" {
		role = d.Role
	}
	name := nameOf(role, d.MessageID)
	m, ok := l.message[name]
	if ok && name.kind != told && m.Invocation == e.Invocation {
		m.reopen(tapedeck.StatusRunning)
		l.work(e.Invocation).messages[m] = struct{}{}
		return true
	}
	m = c.stream(l, e, d.MessageID, role)
	m.Name, m.Subagent, m.Metadata = d.Name, d.Subagent, d.Metadata
	return true
}

// roleOf returns the role of a streamed message, if its events have none.
func roleOf(e *tapedeck.Event) string {
	if strings.HasPrefix(e.Type, "REASONING_") {
		return reasoning
	}
	return payload.RoleAssistant
}

// stream adds a message whose text is to be streamed.
func (c *Conversation) stream(l *lane, e *tapedeck.Event, id, role string) *message {
	m := &message{Message: Message{Item: newItem(l, e, tapedeck.StatusRunning), ID: id}}
	l.work(e.Invocation).messages[m] = struct{}{}
	c.addMessage(l, m, role, e.Offset)
	return m
}

// streamed returns the message to which an event with its id adds text, or which it
// ends; nil if there is none. What the agent was told is complete, unless the agent
// itself streams a message in such a role.
func (l *lane) streamed(e *tapedeck.Event, id string) *message {
	role := roleOf(e)
	if role == payload.RoleAssistant {
		if m := l.message[named{told, id}]; m != nil && l.isBusy(m) {
			return m
		}
	}
	return l.message[nameOf(role, id)]
}

func (c *Conversation) textContent(l *lane, e *tapedeck.Event) bool {
	id, delta, ok := messageDelta.decode(e.Data)
	if !ok {
		return false
	}
	m := l.streamed(e, string(id))
	if m == nil { // its start is missing; keep the text all the same
		m = c.stream(l, e, string(id), roleOf(e))
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
	if m := l.streamed(e, d.MessageID); m != nil {
		l.noteRequest(m)
		m.end(e, closedStatus(d.Metadata))
		l.finish(m.Invocation, m, nil)
	}
	return true
}

// closedStatus returns the status of a message that an event with this metadata
// ends. When the engine ends a run in the middle of a message, it ends the
// message, too, and notes the status of the run in the member "closed". A
// failed run interrupts its message. Without a readable member the message is
// complete.
func closedStatus(metadata json.RawMessage) tapedeck.Status {
	switch tapedeck.MetaOf(metadata).Closed {
	case tapedeck.StatusCancelled:
		return tapedeck.StatusCancelled
	case tapedeck.StatusInterrupted, tapedeck.StatusFailed:
		return tapedeck.StatusInterrupted
	}
	return tapedeck.StatusComplete
}

// addMessage adds m to the conversation in a role. at is the offset of the
// event.
func (c *Conversation) addMessage(l *lane, m *message, role string, at int64) {
	l.messages.add(m)
	l.Messages++
	m.Role = role
	if m.ID != "" {
		l.message[m.name()] = m
	}
	l.countMessage(m, 1)
	g := groupOf(role)
	l.groups[g] = append(l.groups[g], m)
	c.settleMessages(l, at)
}

// A named is by what a message is looked up. The id alone is not enough: agents answer
// under the id of the message that they were sent, and use one id for reasoning and text.
type named struct {
	kind int
	id   string
}

// Kinds of messages: told, and the groups of the agent's own.
const told = groups // what the agent was told: by people, programs and tools

func nameOf(role, id string) named {
	if g := groupOf(role); g != spokenGroup || role == payload.RoleAssistant {
		return named{g, id}
	}
	return named{told, id}
}

func (m *message) name() named { return nameOf(m.Role, m.ID) }

// A MESSAGES_SNAPSHOT restates the messages of a group together.
const (
	spokenGroup = iota // all roles except the next two
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

// drop removes a message from the conversation, with the calls that it made.
func (l *lane) drop(m *message) {
	m.removed = true
	l.Messages--
	l.countMessage(m, -1)
	l.messages.noteRemoved(func(m *message) bool { return m.removed })
	l.forgetID(m)
	l.finish(m.Invocation, m, nil)
	for _, k := range m.calls {
		if !k.removed && k.maker == m {
			l.dropCall(k)
		}
	}
}

func (l *lane) dropCall(k *call) {
	k.removed = true
	l.countCall(k, -1)
	l.calls.noteRemoved(func(k *call) bool { return k.removed })
	if l.call[k.ID] == k {
		delete(l.call, k.ID)
	}
	l.finish(k.Invocation, nil, k)
}

// forgetID makes m unknown by its id.
func (l *lane) forgetID(m *message) {
	if l.message[m.name()] == m {
		delete(l.message, m.name())
	}
}
