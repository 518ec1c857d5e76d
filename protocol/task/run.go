package task

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A run is the state of an open run that decides what its next event becomes.
type run struct {
	started      time.Time // zero if its beginning is not known
	prompt       string
	waits        *startData          // agent_start of an agent that has not begun; nil after it was sent
	messages     map[string]*message // the open messages
	thoughts     map[string]*message
	calls        map[string]*toolCall // the calls that are open or have no answer
	questions    map[string]*question
	linked       bool // session_connect was sent, and session_disconnect was not
	usesTodoTool bool // the agent keeps its plan with the tool TodoWrite
	turn         turn
	turns        int
	spent        totals
}

// A message is an open message.
type message struct {
	role string
	turn int             // the count of the turn in which it began
	text strings.Builder // the pieces; see [payload.Whole]
}

// byAgent reports whether the agent is the author.
func (m *message) byAgent() bool { return m.role == "" || m.role == payload.RoleAssistant }

// A toolCall is an open tool call.
type toolCall struct {
	name    string
	args    strings.Builder
	started bool // tool_start was sent
	at      time.Time
	offset  int64 // at which it began

	answered bool // tool_complete was sent, before the input was complete
}

// folds has the method of a run that applies an event, by the type of the event.
var folds = map[string]func(*run, *tapedeck.Event) []draft{
	tapedeck.TextMessageStart:        (*run).textStart,
	tapedeck.TextMessageContent:      (*run).textContent,
	tapedeck.TextMessageEnd:          (*run).textEnd,
	tapedeck.ReasoningMessageStart:   (*run).thoughtStart,
	tapedeck.ReasoningMessageContent: (*run).thoughtContent,
	tapedeck.ReasoningMessageEnd:     (*run).thoughtEnd,
	tapedeck.ToolCallStart:           (*run).callStart,
	tapedeck.ToolCallArgs:            (*run).callArgs,
	tapedeck.ToolCallEnd:             (*run).callEnd,
	tapedeck.ToolCallResult:          (*run).callResult,
	tapedeck.PermissionRequested:     (*run).permissionRequested,
	tapedeck.PermissionAnswered:      (*run).permissionAnswered,
	tapedeck.PlanUpdated:             (*run).plan,
	tapedeck.UsageReported:           (*run).usage,
	tapedeck.AttemptSuperseded:       (*run).again,
	tapedeck.RunFinished:             (*run).finished,
	tapedeck.RunError:                (*run).failed,
}

// stateful reports whether a run whose beginning is not known has state to remember.
func (r *run) stateful() bool {
	return len(r.messages) > 0 || len(r.thoughts) > 0 || len(r.calls) > 0 || len(r.questions) > 0 || r.usesTodoTool || r.linked
}

func newRun(e *tapedeck.Event, prompt string) *run {
	r := &run{started: e.Time, prompt: prompt}
	r.turn.began = e.Time
	if prompt == "" {
		r.prompt = inputPrompt(e)
	}
	return r
}

// inputPrompt returns the last user message in the input of a run that an external
// client has started.
func inputPrompt(e *tapedeck.Event) string {
	var d struct {
		Input struct {
			Messages []payload.Message `json:"messages"`
		} `json:"input"`
	}
	_ = json.Unmarshal(e.Data, &d) // an absent input has no messages
	for i := len(d.Input.Messages) - 1; i >= 0; i-- {
		if m := &d.Input.Messages[i]; m.Role == payload.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// A part has the data of the events that a streamed message or call consists of.
type part struct {
	MessageID, ToolCallID, Name, Role string
	Delta                             payload.Piece
}

// partOf reads the data of e. A member of another type counts as absent, and so does an erased
// one.
func partOf(e *tapedeck.Event) (p part) {
	o := jsonobj.Read(e.Data)
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		switch string(name) {
		case "messageId":
			p.MessageID = jsonobj.StringOf(value)
		case "toolCallId":
			p.ToolCallID = jsonobj.StringOf(value)
		case "toolCallName":
			p.Name = jsonobj.StringOf(value)
		case "role":
			p.Role = jsonobj.StringOf(value)
		case "delta":
			p.Delta = jsonobj.PieceOf(value)
		}
	}
	return p
}

func (r *run) textStart(e *tapedeck.Event) []draft {
	r.enterTurn(e)
	p := partOf(e)
	add(&r.messages, p.MessageID, &message{role: p.Role, turn: r.turn.count})
	return nil
}

func (r *run) textContent(e *tapedeck.Event) []draft {
	p := partOf(e)
	m := r.messages[p.MessageID]
	if m != nil {
		m.text.WriteString(string(p.Delta))
		if m.turn == r.turn.count && m.text.Len()-len(p.Delta) <= 4*previewRunes && m.byAgent() { // usage may be reported before the message ends
			r.turn.text = preview(payload.Whole(m.text.String()))
		}
	}
	if p.Delta == "" || m != nil && !m.byAgent() {
		return nil
	}
	return drafts(typeMessage, messageData{Text: p.Delta, Partial: true})
}

func (r *run) textEnd(e *tapedeck.Event) []draft {
	id := partOf(e).MessageID
	m := r.messages[id]
	delete(r.messages, id)
	if m == nil || m.text.Len() == 0 {
		return nil
	}
	switch text := payload.Whole(m.text.String()); m.role {
	case "", payload.RoleAssistant:
		if m.turn == r.turn.count {
			r.turn.text = preview(text)
		}
		return drafts(typeMessage, finalMessage(text))
	case payload.RoleUser:
		return drafts(typeUserMessage, textData{text})
	default:
		return nil
	}
}

func (r *run) thoughtStart(e *tapedeck.Event) []draft {
	r.enterTurn(e)
	add(&r.thoughts, partOf(e).MessageID, &message{})
	return nil
}

func (r *run) thoughtContent(e *tapedeck.Event) []draft {
	p := partOf(e)
	if m := r.thoughts[p.MessageID]; m != nil {
		m.text.WriteString(string(p.Delta))
	}
	return nil
}

func (r *run) thoughtEnd(e *tapedeck.Event) []draft {
	id := partOf(e).MessageID
	m := r.thoughts[id]
	delete(r.thoughts, id)
	if m == nil || m.text.Len() == 0 {
		return nil
	}
	return drafts(typeThinking, textData{payload.Whole(m.text.String())})
}

// again forgets what the step has begun that the run repeats. When a step begins, no
// message is open. A client replaces the parts of a message by the message that follows.
func (r *run) again(e *tapedeck.Event) []draft {
	j, _ := e.Jump()
	r.messages, r.thoughts = nil, nil
	for id, c := range r.calls {
		if c.offset >= j.To {
			delete(r.calls, id)
		}
	}
	r.turn.text, r.turn.tools = "", nil
	return nil
}

// add adds v to list under an id.
func add[T any](list *map[string]*T, id string, v *T) {
	if id == "" {
		return // it was erased
	}
	if *list == nil {
		*list = make(map[string]*T)
	}
	(*list)[id] = v
}
