package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// The event types of the SSE task protocol, see docs/protocol/task-events.md.
const (
	taskAgentStart       = "agent_start"
	taskUserMessage      = "user_message"
	taskThinking         = "thinking"
	taskMessage          = "message"
	taskToolStart        = "tool_start"
	taskToolComplete     = "tool_complete"
	taskOutputDisplay    = "output_display"
	taskAgentComplete    = "agent_complete"
	taskError            = "error"
	taskCancelled        = "cancelled"
	taskProfileSwitch    = "profile_switch"
	taskHookTriggered    = "hook_triggered"
	taskConversationTurn = "conversation_turn"
	taskConnect          = "session_connect"
	taskDisconnect       = "session_disconnect"
)

// A taskEvent is an event of the task protocol.
type taskEvent struct {
	Type      string   `json:"type"`
	Data      any      `json:"data"`
	Timestamp string   `json:"timestamp"`
	Sequence  sequence `json:"sequence"`

	partial bool // a finished message follows that has it all
}

// A sequence is the number of a task event: a client that tells it continues after
// it. That is the offset of the event of the log, or if that becomes several, of
// the last of them; those before it have fractions between the offset before and
// this one, so that all numbers grow and none is used twice.
type sequence struct {
	offset      int64
	part, parts int // from 1; the last part has the offset
}

func (s sequence) append(b []byte) []byte {
	if s.part >= s.parts {
		return strconv.AppendInt(b, s.offset, 10)
	}
	digits := len(strconv.Itoa(s.parts))
	return fmt.Appendf(b, "%d.%0*d", s.offset-1, digits, s.part)
}

// MarshalJSON implements json.Marshaler.
func (s sequence) MarshalJSON() ([]byte, error) { return s.append(nil), nil }

// A told is what an event of the log becomes, but for its time and number.
type told struct {
	typ  string
	data any
}

func tell(typ string, data any) []told {
	if typ == "" {
		return nil
	}
	return []told{{typ, data}}
}

// taskTime is the form of their times.
const taskTime = "2006-01-02T15:04:05.000Z"

// appendJSON appends the event as one line.
func (t *taskEvent) appendJSON(b []byte) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}

func (t *taskEvent) appendFrame(b []byte) ([]byte, error) {
	b = t.Sequence.append(append(b, "id: "...))
	b, err := t.appendJSON(append(b, "\ndata: "...))
	return append(b, "\n\n"...), err
}

// taskLookback is how many events before RUN_STARTED what the user has said may
// be. The engine writes it just before.
const taskLookback = 8

// A taskEncoder turns the events of a session, in order, into those of the task
// protocol. What an event becomes depends on what its run has said before, and
// on nothing else.
type taskEncoder struct {
	session string
	runs    map[string]*taskRun // those under way, by invocation
	asked   []asked             // what users have said of late
	since   int64               // what led to a run that begins before is not known, and so it is left out
	whole   bool                // it has seen all events before, or all that matter to runs that it does not know
	past    *past               // for runs that began before; nil if there is no way to find them
}

type asked struct {
	offset           int64
	invocation, text string
}

// encode returns what e becomes, nothing if it becomes nothing.
func (t *taskEncoder) encode(ctx context.Context, e *tapedeck.Event) ([]taskEvent, error) {
	said, err := t.data(ctx, e)
	if err != nil || said == nil {
		return nil, err
	}
	out := make([]taskEvent, len(said))
	for i, s := range said {
		m, ok := s.data.(messageData)
		out[i] = taskEvent{
			Type: s.typ, Data: s.data, Sequence: sequence{e.Offset, i + 1, len(said)}, Timestamp: e.Time.UTC().Format(taskTime),
			partial: ok && m.Partial,
		}
	}
	return out, nil
}

func (t *taskEncoder) data(ctx context.Context, e *tapedeck.Event) ([]told, error) {
	switch e.Type {
	case tapedeck.RunStarted:
		r := newTaskRun(e, t.prompt(e))
		if e.Offset >= t.since {
			t.runs[e.Invocation] = r
		}
		return tell(taskAgentStart, r.start(t.session, e)), nil
	case tapedeck.AgentLinked:
		return tell(taskConnect, connectData{t.session}), nil
	case tapedeck.Custom:
		return tell(customTask(e)), nil
	case tapedeck.MessageAdded:
		return t.added(ctx, e)
	}
	fold := taskFolds[e.Type]
	if fold == nil {
		return nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	if e.Type == tapedeck.ToolCallResult {
		if err := t.meet(ctx, e, r, pieceOf(e).ToolCallID); err != nil {
			return nil, err
		}
	}
	said := fold(r, e)
	if e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
		delete(t.runs, e.Invocation)
	} else {
		t.keep(e, r)
	}
	return said, nil
}

// keep remembers what a run whose beginning is not known has begun.
func (t *taskEncoder) keep(e *tapedeck.Event, r *taskRun) {
	if t.whole && e.Invocation != "" && r.stateful() {
		t.runs[e.Invocation] = r
	}
}

// run returns the run that e belongs to: an empty one if none is known.
func (t *taskEncoder) run(ctx context.Context, e *tapedeck.Event) (*taskRun, error) {
	if r, ok := t.runs[e.Invocation]; ok {
		return r, nil
	}
	if !t.whole && t.past != nil && e.Invocation != "" {
		if err := t.past.recall(ctx, t, e); err != nil {
			return nil, err
		}
		if r, ok := t.runs[e.Invocation]; ok {
			return r, nil
		}
	}
	return &taskRun{}, nil
}

// added is a whole message.
func (t *taskEncoder) added(ctx context.Context, e *tapedeck.Event) ([]told, error) {
	var d payload.MessageAdded
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	text := d.Message.Text()
	switch d.Message.Role {
	case payload.RoleUser:
		t.ask(e, text)
		return tell(taskUserMessage, textData{text}), nil
	case payload.RoleReasoning:
		return tell(taskThinking, textData{text}), nil
	case payload.RoleAssistant, payload.RoleTool:
	default:
		return nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return nil, err
	}
	if d.Message.Role == payload.RoleAssistant {
		said := r.whole(e, &d.Message)
		t.keep(e, r)
		return said, nil
	}
	a := toolAnswer{ToolCallID: d.Message.ToolCallID, text: text, Error: d.Message.Error}
	_ = json.Unmarshal(d.Message.Metadata[tapedeck.VendorKey], &a.Metadata.Tapedeck) // see pieceOf
	if err := t.meet(ctx, e, r, a.ToolCallID); err != nil {
		return nil, err
	}
	return r.answered(e, a), nil
}

// ask remembers what a user has said, for the run that it begins.
func (t *taskEncoder) ask(e *tapedeck.Event, text string) {
	t.asked = slices.DeleteFunc(t.asked, func(a asked) bool { return e.Offset-a.offset > taskLookback })
	t.asked = append(t.asked, asked{e.Offset, e.Invocation, text})
}

// prompt returns what the user has said to begin the run.
func (t *taskEncoder) prompt(e *tapedeck.Event) string {
	for _, a := range slices.Backward(t.asked) {
		if a.invocation == e.Invocation && e.Offset-a.offset <= taskLookback {
			return a.text
		}
	}
	return ""
}

// millis returns how many milliseconds lie between two times, 0 if they are not
// known or the clock was set back.
func millis(from, to time.Time) int64 {
	if from.IsZero() {
		return 0
	}
	return max(to.Sub(from).Milliseconds(), 0)
}
