package ws

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A replayMessage is a message of tapedeck.replay.v1, in both directions, except
// snapshots and errors.
type replayMessage = messageOf[payload.Piece]

// A messageOf is a [replayMessage] whose text is of type T.
type messageOf[T any] struct {
	Type      string `json:"type"`
	ElementID string `json:"elementId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
	Index     *int64 `json:"index,omitempty"` // of an instance of a loop of the element, from 0

	MessageID string `json:"messageId,omitempty"`
	Role      string `json:"role,omitempty"`
	Delta     *T     `json:"delta,omitempty"`
	Content   *T     `json:"content,omitempty"`

	Message string `json:"message,omitempty"` // of a thought

	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	ToolArgs   json.RawMessage `json:"toolArgs,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`

	Timestamp string `json:"timestamp,omitempty"`
}

// encodable returns m for encoding/json, which is slower with pieces than with strings.
func encodable(m *replayMessage) any {
	for _, p := range []*payload.Piece{m.Delta, m.Content} {
		if p != nil && !utf8.ValidString(string(*p)) {
			return m
		}
	}
	return &messageOf[string]{
		Type:       m.Type,
		ElementID:  m.ElementID,
		ThreadID:   m.ThreadID,
		Index:      m.Index,
		MessageID:  m.MessageID,
		Role:       m.Role,
		Delta:      (*string)(m.Delta),
		Content:    (*string)(m.Content),
		Message:    m.Message,
		ToolCallID: m.ToolCallID,
		ToolName:   m.ToolName,
		ToolArgs:   m.ToolArgs,
		Result:     m.Result,
		Timestamp:  m.Timestamp,
	}
}

type replayError struct {
	Type      string        `json:"type"`
	ElementID string        `json:"elementId,omitempty"`
	Kind      tapedeck.Kind `json:"kind"`
	Message   string        `json:"message"`
	Hint      string        `json:"hint,omitempty"`
}

// A pong answers a ping.
type pong struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
}

// A history is the answer to a request for a replay.
type history struct {
	Type      string           `json:"type"`
	ElementID string           `json:"elementId"`
	ThreadID  string           `json:"threadId"`
	Messages  []historyMessage `json:"messages"`
	Thinking  []historyThought `json:"thinking"`
	Tools     []historyTool    `json:"tools"`
	Earlier   int              `json:"earlier,omitempty"` // number of older messages that are left out
}

type historyMessage struct {
	ID        string `json:"id"`
	Role      string `json:"role"`
	Content   any    `json:"content"` // see [payload.Piece.Encodable]
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	Cancelled bool   `json:"cancelled,omitempty"`

	ThreadID string `json:"threadId,omitempty"` // if it is not that of the history
	Index    *int64 `json:"index,omitempty"`    // of an instance of a loop
}

type historyThought struct {
	Message   string `json:"message"`
	Timestamp string `json:"timestamp"`

	ThreadID string `json:"threadId,omitempty"` // if it is not that of the history
	Index    *int64 `json:"index,omitempty"`    // of an instance of a loop
}

type historyTool struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Status    string          `json:"status"`
	Result    json.RawMessage `json:"result,omitempty"`
	StartTime string          `json:"startTime"`
	EndTime   string          `json:"endTime,omitempty"`

	ThreadID string `json:"threadId,omitempty"` // if it is not that of the history
	Index    *int64 `json:"index,omitempty"`    // of an instance of a loop
}

// Limits of what a client is shown of an element.
const (
	maxShown   = 10_000   // messages
	shownBytes = 16 << 20 // bytes, or what began at one offset

	maxOpen = 1000 // the newest messages, of all threads, among which those that are open are looked for
)

// shown asks for what a client is shown of a thread. The rest of the protocol knows no more
// than that of the thread, so that each id means the same everywhere.
func shown(at int64, thread string) view.Query {
	return view.Query{At: &at, Thread: thread, Limit: maxShown, Bytes: shownBytes}
}

// newest asks for the newest messages of all threads.
func newest(at int64) view.Query { return view.Query{At: &at, Limit: maxOpen, Bytes: shownBytes} }

// newHistory returns the empty history of an element. Its thread is that of its first run.
func newHistory(element string) *history {
	return &history{
		Type: typeSnapshot, ElementID: element, ThreadID: threadShown(threadNamed(element)),
		Messages: []historyMessage{}, Thinking: []historyThought{}, Tools: []historyTool{},
	}
}

// add adds what a thread of the element has, without the thoughts and the calls that a live
// message will have when they are complete: a page would show them twice. user says whether
// it has what users say.
func (h *history) add(thread string, index *int64, s *view.Snapshot, user bool) {
	other := ""
	if thread = threadShown(thread); thread != h.ThreadID {
		other = thread
	}
	h.Earlier += s.Earlier
	names := aguiwire.NamesOf(s)
	for i := range s.Messages {
		m := &s.Messages[i]
		switch at := timestamp(m.StartedAt.Time); m.Role {
		case roleReasoning:
			if m.Status != tapedeck.StatusRunning {
				h.Thinking = append(h.Thinking, historyThought{m.Text, at, other, index})
			}
		case roleUser, roleAssistant:
			name := names.Message(m) // also of those that are left out: it counts them
			if user || m.Role == roleAssistant {
				h.Messages = append(h.Messages, historyMessage{
					name, m.Role, m.Pieces().Encodable(), messageStatus(m.Status), at, m.Status == tapedeck.StatusCancelled, other, index,
				})
			}
		}
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		if !isMade(c) {
			continue
		}
		t := historyTool{ID: names.Call(c), Name: c.Name, Args: argsOf(c.Arguments), Status: toolStatus(c.Status), StartTime: timestamp(c.StartedAt.Time), ThreadID: other, Index: index}
		if c.Result != nil {
			t.Result = valueOf(c.Result.Text)
		}
		if c.EndedAt != nil {
			t.EndTime = timestamp(c.EndedAt.Time)
		}
		h.Tools = append(h.Tools, t)
	}
}

// isMade reports whether the arguments of a call are complete, so that the call was sent. Its
// run may have ended without a result: then it is pending again.
func isMade(c *view.ToolCall) bool { return c.Status != tapedeck.StatusPending || c.Made != nil }

func toolStatus(s tapedeck.Status) string {
	if s == tapedeck.StatusPending {
		s = tapedeck.StatusRunning
	}
	return string(s)
}

func messageStatus(s tapedeck.Status) string {
	if s == tapedeck.StatusRunning {
		return "streaming"
	}
	return string(s)
}

// argsOf returns the arguments of a call: an object or an array as such, any other text in
// an object.
func argsOf(text string) json.RawMessage {
	switch raw := jsonobj.SkipSpace([]byte(text)); {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case (raw[0] == '{' || raw[0] == '[') && json.Valid(raw):
		return raw
	}
	return append(jsonobj.AppendJSON([]byte(`{"raw":`), text), '}')
}

// valueOf returns the result of a tool: an object or an array as such, any other text as a
// string.
func valueOf(text string) json.RawMessage {
	raw := jsonobj.SkipSpace([]byte(text))
	if len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') && json.Valid(raw) {
		return raw
	}
	return jsonobj.AppendJSON(nil, text)
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
