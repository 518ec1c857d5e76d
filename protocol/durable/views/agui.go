package views

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// agui shows a session as an AG-UI client expects it: the AG-UI events, with their
// type as a member of their data, and the messages of people.
//
// AG-UI has no event for a whole message, and allows nothing outside a run. So the
// messages before a run follow its RUN_STARTED: as text messages if they are nothing
// but text, otherwise as a MESSAGES_SNAPSHOT of the thread. The first run of a thread
// and the first run after a rewind begin with such a snapshot.
type agui struct {
	Source
	session string
}

func newAGUI(from Source, session string, _ int64) Fold { return agui{from, session} }

func (agui) Size() int { return 0 }

func (a agui) Apply(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	switch {
	case e.Type == tapedeck.RunStarted:
		return a.runStarted(ctx, e, out)
	case e.Type == tapedeck.MessageAdded:
		return a.added(ctx, e, out)
	case e.Type == tapedeck.AttemptSuperseded:
		return a.again(ctx, e, out)
	case !payload.IsAGUI(e.Type):
		return out, nil
	}
	return append(out, typed(e)), nil
}

// typed returns the data of an event with its type as a member.
func typed(e *tapedeck.Event) []byte {
	b := make([]byte, 0, len(e.Data)+len(e.Type)+12)
	b = append(b, '{')
	if len(e.Data) > 2 {
		b = append(append(b, e.Data[1:len(e.Data)-1]...), ',')
	}
	// The type is last, because the last one counts if the data has a member type.
	b = append(append(b, `"type":"`...), e.Type...)
	return append(b, `"}`...)
}

// runStarted shows the beginning of a run and the messages before it.
func (a agui) runStarted(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	before, err := a.lookBack(ctx, e)
	if err != nil {
		return out, err
	}
	if before.open { // an open run of the parent, which ends with the fork
		out = append(out, []byte(`{"message":"the run was interrupted","code":"`+tapedeck.CodeInterrupted+`","type":"`+tapedeck.RunError+`"}`))
	}
	out = append(out, typed(e))
	if before.restate {
		return a.snapshot(ctx, e, out)
	}
	for _, m := range before.messages {
		out = append(out, streamed(&m)...)
	}
	return out, nil
}

// added shows a whole message of a run. A message outside a run is shown when the
// next run begins.
func (a agui) added(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	m, ok := messageOf(e)
	if !ok || isPrompt(&m) {
		return out, nil
	}
	before, err := a.lookBack(ctx, e)
	if err != nil || !before.open {
		return out, err
	}
	isNew, err := a.isNew(ctx, e)
	if err != nil {
		return out, err
	}
	if !isNew || !isPlain(&m) {
		return a.snapshot(ctx, e, out)
	}
	return append(out, streamed(&m)...), nil
}

// isNew reports whether a whole message is a new one, and does not replace another.
func (a agui) isNew(ctx context.Context, e *tapedeck.Event) (bool, error) {
	s, err := a.Views.Snapshot(ctx, a.session, view.Query{At: new(e.Offset + 1), Thread: e.ThreadName(), Limit: 1})
	n := len(s.Messages)
	return n > 0 && s.Messages[n-1].Offset == e.Offset, err
}

// A lookback is what has happened in a thread since its newest run.
type lookback struct {
	open     bool // that run has not ended
	restate  bool // messages does not have all messages
	messages []payload.Message
}

// maxLookback is how many events lookBack reads at most.
const maxLookback = 10_000

// lookBack reads back from e to the beginning or the end of the newest run of its
// thread.
func (a agui) lookBack(ctx context.Context, e *tapedeck.Event) (b lookback, err error) {
	for from := e.Offset; from > 0 && e.Offset-from < maxLookback; {
		p, err := a.Log.Read(ctx, a.session, tapedeck.Range{From: from, Reverse: true})
		if err != nil {
			return b, err
		}
		for _, r := range p.Records {
			before, err := r.Event()
			if err != nil {
				return b, err
			}
			if b.apply(&before, e.ThreadName()) {
				slices.Reverse(b.messages)
				return b, nil
			}
		}
		from = p.Next
	}
	b.restate = true // it is the first run of the thread
	return b, nil
}

// apply applies an event that is before the ones applied so far. It reports whether
// the event begins or ends a run of the thread.
func (b *lookback) apply(e *tapedeck.Event, thread string) bool {
	switch e.Type {
	case tapedeck.SessionForked, tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten:
		b.restate = true
	case tapedeck.MessagesSnapshot, tapedeck.ToolCallResult: // AG-UI does not allow them outside a run
		b.restate = b.restate || e.ThreadName() == thread
	case tapedeck.MessageAdded:
		if m, ok := messageOf(e); ok && e.ThreadName() == thread && !isPrompt(&m) {
			b.messages = append(b.messages, m)
			b.restate = b.restate || !isPlain(&m)
		}
	case tapedeck.RunStarted, tapedeck.RunFinished, tapedeck.RunError:
		b.open = e.Type == tapedeck.RunStarted && e.ThreadName() == thread
		return e.ThreadName() == thread
	}
	return false
}

// snapshot shows all messages of the thread of e as of after it.
func (a agui) snapshot(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	s, err := a.Views.Snapshot(ctx, a.session, view.Query{At: new(e.Offset + 1), Thread: e.ThreadName(), Limit: maxEntities})
	if err != nil {
		return out, err
	}
	return append(out, marshal(struct {
		Messages []json.RawMessage `json:"messages"`
		Type     string            `json:"type"`
	}{restated(&s), tapedeck.MessagesSnapshot})), nil
}

// messageOf returns the message of a message.added.
func messageOf(e *tapedeck.Event) (payload.Message, bool) {
	d, err := payload.DecodeAs[payload.MessageAdded](*e)
	return d.Message, err == nil && d.Message.ID != ""
}

// isPrompt reports whether a message stores the system text of a model, which is not
// part of the conversation.
func isPrompt(m *payload.Message) bool { return payload.PromptOf(m.Role, marshal(m.Metadata)) != "" }

// isPlain reports whether a message has nothing but text.
func isPlain(m *payload.Message) bool {
	var text string
	hasText := m.Role == payload.RoleUser || m.Role == payload.RoleAssistant || m.Role == payload.RoleSystem || m.Role == payload.RoleDeveloper
	return hasText && len(m.ToolCalls) == 0 && json.Unmarshal(m.Content, &text) == nil
}

// streamed returns the AG-UI events of a plain message.
func streamed(m *payload.Message) [][]byte {
	type event struct {
		MessageID string        `json:"messageId"`
		Role      string        `json:"role,omitempty"`
		Name      string        `json:"name,omitempty"`
		Subagent  string        `json:"subagentRunId,omitempty"`
		Delta     payload.Piece `json:"delta,omitempty"`
		Type      string        `json:"type"`
	}
	out := [][]byte{marshal(event{MessageID: m.ID, Role: m.Role, Name: m.Name, Subagent: m.SubagentRunID, Type: tapedeck.TextMessageStart})}
	if text := m.Text(); text != "" {
		out = append(out, marshal(event{MessageID: m.ID, Delta: payload.Piece(text), Type: tapedeck.TextMessageContent}))
	}
	return append(out, marshal(event{MessageID: m.ID, Type: tapedeck.TextMessageEnd}))
}
