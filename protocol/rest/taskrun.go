package rest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A taskRun is what has to be known of a run that is under way to tell what its
// next event becomes.
type taskRun struct {
	started   time.Time // zero if its beginning is not known
	prompt    string
	messages  map[string]*taskText // those that are open
	thoughts  map[string]*taskText
	calls     map[string]*taskCall // those that are open or not answered
	questions map[string]*taskQuestion
	todos     bool // it keeps its plan with the tool TodoWrite
	turn      taskTurn
	turns     int
	spent     taskSpent
}

// A taskText is a message that is being said.
type taskText struct {
	role string
	turn int // in which it began, see taskTurn
	text strings.Builder
}

// spoken reports whether it is the agent that says it.
func (m *taskText) spoken() bool { return m.role == "" || m.role == payload.RoleAssistant }

// A taskCall is a tool call that goes on.
type taskCall struct {
	name    string
	args    strings.Builder
	started bool // tool_start was sent
	at      time.Time
	early   *toolAnswer // the answer that came before the arguments were complete
}

// taskFolds says how a run is folded.
var taskFolds = map[string]func(*taskRun, *tapedeck.Event) []told{
	tapedeck.TextMessageStart:        (*taskRun).textStart,
	tapedeck.TextMessageContent:      (*taskRun).textContent,
	tapedeck.TextMessageEnd:          (*taskRun).textEnd,
	tapedeck.ReasoningMessageStart:   (*taskRun).thoughtStart,
	tapedeck.ReasoningMessageContent: (*taskRun).thoughtContent,
	tapedeck.ReasoningMessageEnd:     (*taskRun).thoughtEnd,
	tapedeck.ToolCallStart:           (*taskRun).callStart,
	tapedeck.ToolCallArgs:            (*taskRun).callArgs,
	tapedeck.ToolCallEnd:             (*taskRun).callEnd,
	tapedeck.ToolCallResult:          (*taskRun).callResult,
	tapedeck.PermissionRequested:     (*taskRun).permissionRequested,
	tapedeck.PermissionAnswered:      (*taskRun).permissionAnswered,
	tapedeck.PlanUpdated:             (*taskRun).plan,
	tapedeck.UsageReported:           (*taskRun).usage,
	tapedeck.RunFinished:             (*taskRun).finished,
	tapedeck.RunError:                (*taskRun).failed,
}

// stateful reports whether there is anything to remember of a run whose
// beginning is not known.
func (r *taskRun) stateful() bool {
	return len(r.messages) > 0 || len(r.thoughts) > 0 || len(r.calls) > 0 || len(r.questions) > 0 || r.todos
}

func newTaskRun(e *tapedeck.Event, prompt string) *taskRun {
	r := &taskRun{started: e.Time, prompt: prompt}
	r.turn.began = e.Time
	if prompt == "" {
		r.prompt = inputPrompt(e)
	}
	return r
}

// inputPrompt returns the last thing that the user says in the input of a run
// that was started from outside.
func inputPrompt(e *tapedeck.Event) string {
	var d struct {
		Input struct {
			Messages []payload.Message `json:"messages"`
		} `json:"input"`
	}
	_ = json.Unmarshal(e.Data, &d) // what is not there is not known
	for i := len(d.Input.Messages) - 1; i >= 0; i-- {
		if m := &d.Input.Messages[i]; m.Role == payload.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// A piece has the members of the events that a message or a call is made of.
type piece struct {
	MessageID  string `json:"messageId"`
	ToolCallID string `json:"toolCallId"`
	Name       string `json:"toolCallName"`
	Role       string `json:"role"`
	Delta      string `json:"delta"`
}

func pieceOf(e *tapedeck.Event) (p piece) {
	_ = json.Unmarshal(e.Data, &p) // a member of another shape counts as absent, and so does what was erased
	return p
}

func (r *taskRun) textStart(e *tapedeck.Event) []told {
	r.mark(e)
	p := pieceOf(e)
	open(&r.messages, p.MessageID, &taskText{role: p.Role, turn: r.turn.count})
	return nil
}

func (r *taskRun) textContent(e *tapedeck.Event) []told {
	p := pieceOf(e)
	m := r.messages[p.MessageID]
	if m != nil {
		m.text.WriteString(p.Delta)
		if m.turn == r.turn.count && m.text.Len()-len(p.Delta) <= 4*previewRunes && m.spoken() { // usage may be told before its end
			r.turn.said = preview(m.text.String())
		}
	}
	if p.Delta == "" || m != nil && !m.spoken() {
		return nil
	}
	return tell(taskMessage, messageData{Text: p.Delta, Partial: true})
}

func (r *taskRun) textEnd(e *tapedeck.Event) []told {
	id := pieceOf(e).MessageID
	m := r.messages[id]
	delete(r.messages, id)
	if m == nil || m.text.Len() == 0 {
		return nil
	}
	switch text := m.text.String(); m.role {
	case "", payload.RoleAssistant:
		if m.turn == r.turn.count {
			r.turn.said = preview(text)
		}
		return tell(taskMessage, finalMessage(text))
	case payload.RoleUser:
		return tell(taskUserMessage, textData{text})
	default:
		return nil
	}
}

func (r *taskRun) thoughtStart(e *tapedeck.Event) []told {
	r.mark(e)
	open(&r.thoughts, pieceOf(e).MessageID, &taskText{})
	return nil
}

func (r *taskRun) thoughtContent(e *tapedeck.Event) []told {
	p := pieceOf(e)
	if m := r.thoughts[p.MessageID]; m != nil {
		m.text.WriteString(p.Delta)
	}
	return nil
}

func (r *taskRun) thoughtEnd(e *tapedeck.Event) []told {
	id := pieceOf(e).MessageID
	m := r.thoughts[id]
	delete(r.thoughts, id)
	if m == nil || m.text.Len() == 0 {
		return nil
	}
	return tell(taskThinking, textData{m.text.String()})
}

// open remembers that something has begun.
func open[T any](list *map[string]*T, id string, v *T) {
	if id == "" {
		return // it was erased
	}
	if *list == nil {
		*list = make(map[string]*T)
	}
	(*list)[id] = v
}
