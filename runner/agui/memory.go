package agui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// maxOwn is how much of the run itself is folded, in bytes of its events. An agent that
// never ends must not fill the memory. It gets back what it said only if it asks, so that
// the rest of a longer run is missing then.
const maxOwn = 64 << 20

// A memory is the conversation of the thread, folded from its active events. The agent
// gets the whole of it with each request, as from every front end.
type memory struct {
	in    *tapedeck.Invocation
	fold  view.Conversation
	next  int64  // the offset of the next event of the run in this fold
	own   int    // bytes of the run that were folded
	task  string // the id of the user's message; "" if the run has none
	waits *waits // what the newest run of the thread waits for; nil for nothing
	ended bool   // the newest run of the thread has not failed and was not stopped; false if there is none
}

func newMemory(in *tapedeck.Invocation) *memory {
	m := &memory{in: in}
	m.fold.Keep()
	return m
}

func (m *memory) thread() string {
	e := tapedeck.Event{Thread: m.in.Thread}
	return e.ThreadName()
}

// recall folds the history and the task.
func (m *memory) recall(ctx context.Context) error {
	if m.in.History != nil {
		for e, err := range m.in.History(ctx) {
			if err != nil {
				return err
			}
			m.next = e.Offset + 1
			if e.Channel == tapedeck.ChannelSession || e.ThreadName() == m.thread() {
				m.fold.Apply(&e)
				m.note(&e)
			}
		}
	}
	if runs := m.fold.Thread(m.thread()).Runs; len(runs) > 0 {
		m.ended = runs[len(runs)-1].Status == tapedeck.StatusComplete
	}
	if task := m.message(); task != nil {
		m.task = task.ID
		m.add(payload.NewEvent(payload.MessageAdded{Message: *task}))
	}
	return nil
}

// note notes what a run of the history waits for.
func (m *memory) note(e *tapedeck.Event) {
	switch e.Type {
	case tapedeck.RunStarted:
		m.waits = nil
	case tapedeck.Custom:
		d, err := payload.DecodeAs[payload.Custom](*e)
		w := new(waits)
		if err == nil && d.Name == waitsEvent && json.Unmarshal(d.Value, w) == nil {
			m.waits = w
		}
	}
}

// message returns the user's message, nil if a tool has just answered, so that the user
// has said nothing.
func (m *memory) message() *payload.Message {
	task := new(payload.Message)
	if json.Unmarshal(m.in.Message, task) == nil && task.ID != "" {
		return task
	}
	if list := m.messages(); len(list) > 0 && list[len(list)-1].Role == payload.RoleTool {
		return nil
	}
	*task = payload.NewMessage(m.in.ID, payload.RoleUser, m.in.Task)
	return task
}

// add folds an event of the run.
func (m *memory) add(e tapedeck.Event) {
	const overhead = 256 // bytes that the fold needs for a small event
	if m.own += len(e.Data) + overhead; m.own > maxOwn {
		return
	}
	e.Offset, e.Channel = m.next, tapedeck.ChannelOf(e.Type)
	e.Thread, e.Invocation = m.thread(), m.in.ID
	m.next++
	m.fold.Apply(&e)
}

// state returns the state of the thread, nil for none.
func (m *memory) state() json.RawMessage {
	if s := m.fold.Thread(m.thread()).State; s != nil {
		return s.Value
	}
	return nil
}

// call returns a call of the thread.
func (m *memory) call(id string) (view.ToolCall, bool) {
	calls := m.fold.Thread(m.thread()).Calls
	i := slices.IndexFunc(calls, func(k view.ToolCall) bool { return k.ID == id })
	if id == "" || i < 0 {
		return view.ToolCall{}, false
	}
	return calls[i], true
}

// forAgent is the form of messages for the agent.
var forAgent = aguiwire.Form{ForAgent: true}

// messages returns the messages of the thread as they are for people. Reasoning,
// activities and sub-agents are not for agents. The answers of tools are text, because
// servers of earlier versions know no parts in them.
func (m *memory) messages() []payload.Message {
	now := m.fold.Thread(m.thread())
	list := slices.DeleteFunc(forAgent.Messages(&now), func(m payload.Message) bool {
		return m.SubagentRunID != "" || m.Role == payload.RoleReasoning || m.Role == payload.RoleActivity ||
			m.Role == payload.RoleAssistant && len(m.ToolCalls) == 0 && m.Text() == ""
	})
	for i := range list {
		if m := &list[i]; m.Role == payload.RoleTool && !jsonobj.IsString(m.Content) {
			m.Content = payload.Text(m.Text())
		}
	}
	return list
}

// taskID returns the id of the user's message as the agent gets it. It is another one than in
// the log if the agent has used that for its answer.
func (m *memory) taskID() string {
	now := m.fold.Thread(m.thread())
	names := forAgent.Names(&now)
	for i := range slices.Backward(now.Messages) {
		if one := &now.Messages[i]; one.ID == m.task && aguiwire.KindOf(one.Role) == aguiwire.Told {
			return names.Message(one)
		}
	}
	return m.task
}

// sent returns the messages as the agent gets them: each call that was stopped has an
// answer that says so, because models refuse a call without one. The task begins with
// what the agent must know about the run before.
func (m *memory) sent() []payload.Message {
	stopped := map[string]bool{}
	now := m.fold.Thread(m.thread())
	names := forAgent.Names(&now)
	for i := range now.Calls {
		k := &now.Calls[i]
		stopped[names.Call(k)] = k.Result == nil && (k.Status == tapedeck.StatusCancelled || k.Status == tapedeck.StatusInterrupted)
	}
	var out []payload.Message
	task := m.taskID()
	for _, one := range m.messages() {
		if one.ID == task && m.in.Context != "" {
			one.Content = withContext(&one, m.in)
		}
		out = append(out, one)
		for i := range one.ToolCalls {
			k := &one.ToolCalls[i]
			if !stopped[k.ID] {
				continue
			}
			why := "The run stopped before the tool answered. The call may have taken effect."
			if !isObject(k.Function.Arguments) {
				k.Function.Arguments, why = "{}", "The run stopped before the arguments of this call were complete."
			}
			answer := payload.NewMessage(k.ID+".stopped", payload.RoleTool, why)
			answer.ToolCallID = k.ID
			out = append(out, answer)
		}
	}
	return out
}

// withContext returns the content of the task with the context before it.
func withContext(task *payload.Message, in *tapedeck.Invocation) json.RawMessage {
	var parts []json.RawMessage
	if json.Unmarshal(task.Content, &parts) != nil {
		return payload.Text(runner.TaskAfterHistory(in))
	}
	first := append(append([]byte(`{"type":"text","text":`), payload.Text(in.Context+"\n\n")...), '}')
	raw, err := json.Marshal(slices.Insert(parts, 0, first))
	if err != nil {
		return task.Content // never happens: the parts were decoded from JSON
	}
	return raw
}

func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimSpace(s), "{") && json.Valid([]byte(s))
}
