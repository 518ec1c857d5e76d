package view

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck/payload"
)

// The types of a [ContextEvent].
const (
	SystemMessage    = "system_message"    // content {role, content}
	UserMessage      = "user_message"      // {role, content}
	AssistantMessage = "assistant_message" // {role, content, tool_calls?}
	CallEvent        = "tool_call"         // {id, name, arguments}
	ResultEvent      = "tool_result"       // {tool_call_id, content}
)

// A ContextEvent is one step of what an instance has been told and has said: the
// context of its model, event by event.
type ContextEvent struct {
	Sequence   int             `json:"sequence_number"` // from 0, without gaps
	Type       string          `json:"event_type"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id,omitempty"` // of a call and a result
	Offset     int64           `json:"offset"`                 // of the event in the session that began it
	EndOffset  *int64          `json:"end_offset,omitempty"`   // of the one that ended it; absent of a call, and of what is not complete
	CreatedAt  Time            `json:"created_at"`
}

// ContextEvents returns the context of an instance event by event. What comes
// later in the session comes later here, and so a sequence number stays with its
// event as long as nothing is taken back or replaced. An assistant's message gets
// its calls as they are made.
//
// Calls that no message of the assistant has made are given one without text: the
// messages alone are a whole conversation. Reasoning is left out.
func ContextEvents(s Snapshot, of Instance) []ContextEvent {
	events := []ContextEvent{}
	for _, one := range steps(utterances(s, &of)) {
		events = append(events, one.ContextEvent)
	}
	return events
}

// A step is a context event with what it is made of.
type step struct {
	ContextEvent
	said *utterance // of a message
	call *ToolCall  // of a result
}

// steps returns the context events of utterances, in order.
func steps(all []*utterance) []step {
	var list []step
	for _, u := range all {
		if !u.message {
			u.end = madeAll(u.calls)
		}
		list = append(list, step{ContextEvent: u.event(), said: u})
		for _, k := range u.calls {
			list = append(list, callSteps(k)...)
		}
	}
	slices.SortStableFunc(list, func(a, b step) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := range list {
		list[i].Sequence = i
	}
	return list
}

// madeAll returns the offset of the event that ended the last of calls, nil if not
// all are complete: a message that only makes calls ends with them.
func madeAll(calls []*ToolCall) (end *int64) {
	for _, k := range calls {
		made := k.Made
		if made == nil {
			made = k.EndOffset // it was answered, or its run has ended
		}
		if made == nil {
			return nil
		}
		if end == nil || *made > *end {
			end = made
		}
	}
	return end
}

func (u *utterance) event() ContextEvent {
	typ := map[string]string{
		payload.RoleSystem: SystemMessage, payload.RoleUser: UserMessage, payload.RoleAssistant: AssistantMessage,
	}[u.role]
	var content struct {
		Role      string            `json:"role"`
		Content   string            `json:"content"`
		ToolCalls []ContextToolCall `json:"tool_calls,omitempty"`
	}
	content.Role, content.Content = u.role, u.text
	for _, k := range u.calls {
		content.ToolCalls = append(content.ToolCalls, ContextToolCall{
			ID: callID(k), Type: "function", Function: ContextFunction{Name: k.Name, Arguments: k.Arguments},
		})
	}
	return ContextEvent{Type: typ, Content: mustEncode(content), Offset: u.offset, EndOffset: u.end, CreatedAt: u.at}
}

// callSteps returns a call and, if it has been answered, the answer.
func callSteps(k *ToolCall) []step {
	id := callID(k)
	call := struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}{id, k.Name, k.Arguments}
	list := []step{{ContextEvent: ContextEvent{Type: CallEvent, Content: mustEncode(call), ToolCallID: id, Offset: k.Offset, CreatedAt: k.StartedAt}}}
	if k.Result == nil {
		return list
	}
	result := struct {
		ToolCallID string `json:"tool_call_id"`
		Content    string `json:"content"`
	}{id, resultText(k)}
	at := k.StartedAt
	if k.EndedAt != nil {
		at = *k.EndedAt
	}
	return append(list, step{call: k, ContextEvent: ContextEvent{
		Type: ResultEvent, Content: mustEncode(result), ToolCallID: id,
		Offset: k.Result.Offset, EndOffset: &k.Result.Offset, CreatedAt: at,
	}})
}

func mustEncode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings are put in
	}
	return b
}

// An utterance is what somebody says at once: a message, and the calls that it
// makes.
type utterance struct {
	offset     int64
	end        *int64 // nil while it goes on
	at         Time
	thread     string
	invocation string
	turn       int
	role       string // system, user or assistant
	text       string
	calls      []*ToolCall
	made       string // the id of the message that makes the calls; "" if they name none
	message    bool   // there is such a message
	prompt     bool   // it stores the system text of the model; see [payload.NewPrompt]
}

// utterances returns what an instance was told and said, in the order in which
// it began.
func utterances(s Snapshot, of *Instance) []*utterance {
	var all []*utterance
	byID := map[[2]string]*utterance{} // by invocation and id, the newest
	told := contexts(s)
	m, k := 0, 0
	for m < len(s.Messages) || k < len(s.Calls) {
		if k >= len(s.Calls) || m < len(s.Messages) && s.Messages[m].Offset <= s.Calls[k].Offset {
			if u := utter(&s.Messages[m], of); u != nil {
				u.tell(told)
				all = append(all, u)
				byID[[2]string{u.invocation, u.made}] = u
			}
			m++
			continue
		}
		call := &s.Calls[k]
		k++
		// A call without a name is one of which only the answer is there.
		if !of.Has(&call.Item) || call.Name == "" {
			continue
		}
		u := byID[[2]string{call.Invocation, call.MessageID}]
		if call.MessageID == "" {
			u = nil
			if n := len(all); n > 0 && all[n-1].mayMake(call) {
				u = all[n-1]
			}
		}
		if u == nil || !u.takes(call) {
			u = &utterance{
				offset: call.Offset, at: call.StartedAt, invocation: call.Invocation, turn: call.Turn,
				role: payload.RoleAssistant, made: call.MessageID,
			}
			all = append(all, u)
			byID[[2]string{u.invocation, u.made}] = u
		}
		u.calls = append(u.calls, call)
	}
	return all
}

// contexts returns by thread and invocation what an agent was told before its
// task.
func contexts(s Snapshot) map[[2]string]string {
	told := map[[2]string]string{}
	for i := range s.Runs {
		if r := &s.Runs[i]; r.Context != "" {
			told[[2]string{r.Thread, r.Invocation}] = r.Context
		}
	}
	return told
}

// tell puts what the agent was told before its task in front of the task: the
// first message of the user in the run.
func (u *utterance) tell(told map[[2]string]string) {
	key := [2]string{u.thread, u.invocation}
	if context, ok := told[key]; ok && u.role == payload.RoleUser {
		u.text = Told(context, u.text)
		delete(told, key)
	}
}

// Told returns what an agent gets for a task: before the words of the user stands
// the context, which says how the run before it ended, if there is one.
func Told(context, task string) string {
	if context == "" {
		return task
	}
	return context + "\n\n" + task
}

// utter returns the utterance of a message, nil if it is none of the instance or
// no model is told of it.
func utter(m *Message, of *Instance) *utterance {
	role := m.Role
	switch role {
	case payload.RoleSystem, payload.RoleUser, payload.RoleAssistant:
	case payload.RoleDeveloper:
		role = payload.RoleSystem
	default:
		return nil
	}
	if !of.Has(&m.Item) {
		return nil
	}
	return &utterance{
		offset: m.Offset, end: m.EndOffset, at: m.StartedAt, thread: m.Thread, invocation: m.Invocation, turn: m.Turn,
		role: role, text: textOf(m.Text, m.Parts), made: m.ID, message: true,
		prompt: payload.PromptOf(m.Role, m.Metadata) != "",
	}
}

// mayMake reports whether a call that names no message can be one of u, which was
// said last.
func (u *utterance) mayMake(k *ToolCall) bool {
	return u.role == payload.RoleAssistant && u.invocation == k.Invocation && u.turn == k.Turn && (!u.message || k.Turn > 0)
}

// takes reports whether u can make one more call: not when the answer to one of
// its calls was there before, for then the model has been asked again.
func (u *utterance) takes(k *ToolCall) bool {
	if u.role != payload.RoleAssistant {
		return false
	}
	for _, other := range u.calls {
		if other.Result != nil && other.Result.Offset < k.Offset {
			return false
		}
	}
	return true
}
