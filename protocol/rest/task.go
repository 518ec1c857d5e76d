package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
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

// A taskEvent is an event of the task protocol. An event of the log becomes at
// most one, so its offset is the sequence number, and a client that tells it can
// go on after it.
type taskEvent struct {
	Type      string `json:"type"`
	Data      any    `json:"data"`
	Timestamp string `json:"timestamp"`
	Sequence  int64  `json:"sequence"`

	partial bool // a finished message follows that has it all
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
	b = strconv.AppendInt(append(b, "id: "...), t.Sequence, 10)
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

// encode returns what e becomes, nil if it becomes nothing.
func (t *taskEncoder) encode(ctx context.Context, e *tapedeck.Event) (*taskEvent, error) {
	typ, data, err := t.data(ctx, e)
	if err != nil || typ == "" {
		return nil, err
	}
	m, ok := data.(messageData)
	return &taskEvent{
		Type: typ, Data: data, Sequence: e.Offset, Timestamp: e.Time.UTC().Format(taskTime),
		partial: ok && m.Partial,
	}, nil
}

func (t *taskEncoder) data(ctx context.Context, e *tapedeck.Event) (string, any, error) {
	switch e.Type {
	case tapedeck.RunStarted:
		r := newTaskRun(e, t.prompt(e))
		if e.Offset >= t.since {
			t.runs[e.Invocation] = r
		}
		return taskAgentStart, r.start(t.session, e), nil
	case tapedeck.AgentLinked:
		return taskConnect, connectData{t.session}, nil
	case tapedeck.Custom:
		typ, data := customTask(e)
		return typ, data, nil
	case tapedeck.MessageAdded:
		return t.added(ctx, e)
	}
	fold := taskFolds[e.Type]
	if fold == nil {
		return "", nil, nil
	}
	r, err := t.run(ctx, e)
	if err != nil {
		return "", nil, err
	}
	typ, data := fold(r, e)
	switch {
	case e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError:
		delete(t.runs, e.Invocation)
	case t.whole && e.Invocation != "" && r.stateful():
		t.runs[e.Invocation] = r
	}
	return typ, data, nil
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
func (t *taskEncoder) added(ctx context.Context, e *tapedeck.Event) (string, any, error) {
	var d tapedeck.MessageAddedData
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	text := d.Message.Text()
	switch d.Message.Role {
	case tapedeck.RoleUser:
		t.ask(e, text)
		return taskUserMessage, textData{text}, nil
	case tapedeck.RoleAssistant:
		if text != "" {
			return taskMessage, finalMessage(text), nil
		}
	case tapedeck.RoleReasoning:
		return taskThinking, textData{text}, nil
	case tapedeck.RoleTool:
		r, err := t.run(ctx, e)
		if err != nil {
			return "", nil, err
		}
		typ, data := r.answered(e, toolAnswer{ToolCallID: d.Message.ToolCallID, text: text, Error: d.Message.Error})
		return typ, data, nil
	}
	return "", nil, nil
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
