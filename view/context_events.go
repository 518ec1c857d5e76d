package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/tapedeck/tapedeck"
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

// A ContextEvent is one step in the context of an instance's model: a message,
// a tool call or its result.
type ContextEvent struct {
	ID         string          `json:"id,omitempty"`          // unique across sessions; the repository of contexts gives it
	Instance   string          `json:"instance_id,omitempty"` // of the context; likewise
	Sequence   int             `json:"sequence_number"`       // from 0, without gaps
	Type       string          `json:"event_type"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id,omitempty"` // of a result; for the id of a call see [ContextEvent.CallID]
	Offset     int64           `json:"offset"`                 // the event of the session that began the step
	EndOffset  *int64          `json:"end_offset,omitempty"`   // the event that ended it; absent while it is not complete
	CreatedAt  Time            `json:"created_at"`

	// MayChange means that the agent still works on it: its run is open, and the text, the
	// arguments or the calls of the message may grow.
	MayChange bool `json:"-"`
}

// CallID returns the id of the call that the event makes or answers, "" for a message.
func (e *ContextEvent) CallID() string {
	var d struct {
		ID string `json:"id"`
	}
	if e.Type == CallEvent {
		_ = json.Unmarshal(e.Content, &d) // other members do not matter
	}
	return cmp.Or(d.ID, e.ToolCallID)
}

// IDIn returns the id of the event, in the session of its context. It is the same as long as
// the event is there. A copy of the event has another one. The ids of a context have the
// order of their events.
func (e *ContextEvent) IDIn(session string) string {
	id := fmt.Sprintf("%s-%012d", session, e.Offset)
	if e.Type == CallEvent {
		id += "-call" // the message that makes it may begin with the same event
	}
	return id
}

// A ContextCut says that a fork or an overwrite cuts the log in the context of an agent:
// after one of its events. The agent is not told that the cut has divided a run.
type ContextCut struct {
	Thread   string   `json:"thread,omitempty"`   // of the context; without it "main"
	Uncalled []string `json:"uncalled,omitempty"` // ids of calls that the last message has and the context has not: their tool_call events are cut off
}

// CutContext returns where a log is cut so that a context ends with one of its events:
// the first offset that is not kept, and the calls that only the last message is to have,
// although the log has them together with the message. If nothing comes after them, the
// offset is -1.
func CutContext(events []ContextEvent, last int) (first int64, uncalled []string) {
	rest := events[last+1:]
	asked := askedBefore(events[:last+1])
	for len(rest) > 0 && rest[0].Type == CallEvent && asked[rest[0].CallID()] {
		if end := rest[0].EndOffset; end != nil {
			first = max(first, *end+1)
		} else {
			first = math.MaxInt64 // up to the event after the calls
		}
		uncalled, rest = append(uncalled, rest[0].CallID()), rest[1:]
	}
	for _, e := range rest {
		switch {
		case e.Offset <= events[last].Offset: // the log has both in one event
		case uncalled == nil, e.Offset < first:
			return e.Offset, uncalled
		default:
			return first, uncalled
		}
	}
	if uncalled == nil || first == math.MaxInt64 {
		return -1, uncalled
	}
	return first, uncalled
}

// askedBefore returns the ids of the calls in the last message of the agent that have no
// result. A call with the id of one that has its result is another call.
func askedBefore(events []ContextEvent) map[string]bool {
	ids, answered := map[string]bool{}, map[string]bool{}
	for _, e := range slices.Backward(events) {
		if e.Type == ResultEvent {
			answered[e.ToolCallID] = true
		}
		if e.Type != AssistantMessage {
			continue
		}
		var d struct {
			ToolCalls []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		}
		_ = json.Unmarshal(e.Content, &d) // other members do not matter
		for _, k := range d.ToolCalls {
			ids[k.ID] = !answered[k.ID]
		}
		break
	}
	return ids
}

// ContextEvents returns the context of an instance as a list of events, nil if s lacks
// earlier messages: then nobody can count them. They
// have the order of the session's events. So each keeps its sequence number as
// long as nothing is reverted or replaced. A message of the assistant gets its
// calls as they are made.
//
// Calls that belong to no message get an empty message of the assistant, so
// that the messages alone are a whole conversation. Reasoning is left out.
func ContextEvents(s Snapshot, of Instance) []ContextEvent {
	if s.Earlier > 0 {
		return nil
	}
	events := []ContextEvent{}
	for _, one := range steps(utterances(s, &of)) {
		events = append(events, one.ContextEvent)
	}
	return events
}

// A step is a context event together with its source.
type step struct {
	ContextEvent
	said *utterance // set for a message
	call *ToolCall  // set for a result
}

// steps returns the context events of utterances, by offset.
func steps(all []*utterance) []step {
	var list []step
	for _, u := range all {
		if !u.message {
			u.end = callsEnd(u.calls)
		}
		if u.step != CallEvent {
			e := u.event()
			e.MayChange = u.open && u.grows()
			list = append(list, step{ContextEvent: e, said: u})
		}
		for _, k := range u.calls {
			made := callSteps(k)
			for i := range made {
				made[i].MayChange = u.open && made[i].EndOffset == nil
			}
			list = append(list, made...)
		}
	}
	slices.SortStableFunc(list, func(a, b step) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := range list {
		list[i].Sequence = i
	}
	return list
}

// callsEnd returns the offset of the event that completed the last of the
// calls, nil while one of them is incomplete. A message that only makes calls
// ends there.
func callsEnd(calls []*ToolCall) (end *int64) {
	for _, k := range calls {
		made := k.Made
		if made == nil {
			made = k.EndOffset // it was answered, or its run ended
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
	if u.given != nil {
		return ContextEvent{Type: typ, Content: u.given, Offset: u.offset, EndOffset: u.end, CreatedAt: u.at}
	}
	content.Role, content.Content = u.role, u.text
	for _, k := range u.calls {
		content.ToolCalls = append(content.ToolCalls, ContextToolCall{
			ID: k.ContextID(), Type: "function", Function: ContextFunction{Name: k.Name, Arguments: k.Arguments},
		})
	}
	return ContextEvent{Type: typ, Content: mustEncode(content), Offset: u.offset, EndOffset: u.end, CreatedAt: u.at}
}

// callSteps returns a call, unless only its message has it, and its result, if it was
// answered.
func callSteps(k *ToolCall) (list []step) {
	if k.Step.Offset != nil || !k.Step.Uncalled {
		list = append(list, step{ContextEvent: callEvent(k)})
	}
	if k.Result == nil {
		return list
	}
	e := ContextEvent{
		Type: ResultEvent, Content: k.Step.Result, ToolCallID: k.ContextID(),
		Offset: k.Result.Offset, EndOffset: &k.Result.Offset, CreatedAt: k.StartedAt,
	}
	if k.EndedAt != nil {
		e.CreatedAt = *k.EndedAt
	}
	if e.Content == nil {
		e.Content = mustEncode(struct {
			ToolCallID string `json:"tool_call_id"`
			Content    string `json:"content"`
		}{e.ToolCallID, resultText(k)})
	}
	return append(list, step{call: k, ContextEvent: e})
}

func callEvent(k *ToolCall) ContextEvent {
	e := ContextEvent{Type: CallEvent, Content: k.Step.Call, Offset: k.Offset, EndOffset: k.Made, CreatedAt: k.StartedAt}
	if at := k.Step.Offset; at != nil {
		e.Offset, e.EndOffset, e.CreatedAt = *at, at, *k.Step.At
	}
	if e.Content == nil {
		e.Content = mustEncode(struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}{k.ContextID(), k.Name, k.Arguments})
	}
	return e
}

func mustEncode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the values hold only strings
	}
	return b
}

// An utterance is a message together with the calls that it makes.
type utterance struct {
	offset     int64
	end        *int64 // nil while it is being streamed
	at         Time
	thread     string
	invocation string
	turn       int
	role       string // system, user or assistant
	text       string
	calls      []*ToolCall
	made       string          // the id of the message that makes the calls; "" if the calls name none
	message    bool            // a message exists; otherwise the utterance has only calls
	open       bool            // its run is open
	prompt     bool            // it stores the system text of the model; see [payload.NewPrompt]
	step       string          // the type of the context event that the message is; "" if it is a message as any other
	given      json.RawMessage // the content of this event; nil if it is that of the message
}

// utterances returns the messages and calls of an instance, in the order in
// which they began.
func utterances(s Snapshot, of *Instance) []*utterance {
	var all []*utterance
	byID := map[[2]string]*utterance{} // by invocation and message id; the newest utterance of the agent
	contexts, open := runContexts(s), openRuns(s)
	m, k := 0, 0
	for m < len(s.Messages) || k < len(s.Calls) {
		if k >= len(s.Calls) || m < len(s.Messages) && s.Messages[m].Offset <= s.Calls[k].Offset {
			if u := newUtterance(&s.Messages[m], of); u != nil {
				u.addContext(contexts)
				all = append(all, u)
				if u.role == payload.RoleAssistant { // a user's message makes no calls, although it may have their id
					byID[[2]string{u.invocation, u.made}] = u
				}
			}
			m++
			continue
		}
		call := &s.Calls[k]
		k++
		// The log has only the result of a call without a name.
		if !of.Has(&call.Item) || call.Name == "" {
			continue
		}
		u := byID[[2]string{call.Invocation, call.MessageID}]
		if call.MessageID == "" {
			u = nil
			if n := len(all); n > 0 && all[n-1].mayOwn(call) {
				u = all[n-1]
			}
		}
		if u == nil || !u.canMake(call) {
			u = &utterance{
				offset: call.Offset, at: call.StartedAt, invocation: call.Invocation, turn: call.Turn,
				role: payload.RoleAssistant, made: call.MessageID,
			}
			all = append(all, u)
			byID[[2]string{u.invocation, u.made}] = u
		}
		u.calls = append(u.calls, call)
	}
	for _, u := range all {
		u.open = open[u.invocation]
	}
	return all
}

// openRuns returns the invocations of the runs that are open.
func openRuns(s Snapshot) map[string]bool {
	open := map[string]bool{}
	for i := range s.Runs {
		if r := &s.Runs[i]; r.EndedAt == nil {
			open[r.Invocation] = true
		}
	}
	return open
}

// runContexts returns the contexts of runs (see [Run]) by thread and invocation.
func runContexts(s Snapshot) map[[2]string]string {
	contexts := map[[2]string]string{}
	for i := range s.Runs {
		if r := &s.Runs[i]; r.Context != "" {
			contexts[[2]string{r.Thread, r.Invocation}] = r.Context
		}
	}
	return contexts
}

// addContext puts the context of a run in front of its task: the first message
// of the user in the run. It removes the context that it used from the map.
func (u *utterance) addContext(contexts map[[2]string]string) {
	key := [2]string{u.thread, u.invocation}
	if context, ok := contexts[key]; ok && u.role == payload.RoleUser {
		u.text = TaskWithContext(context, u.text)
		delete(contexts, key)
	}
}

// TaskWithContext returns the text that an agent gets for a task. If there is a
// context, which says how the run before ended, it comes before the task.
func TaskWithContext(context, task string) string {
	if context == "" {
		return task
	}
	return context + "\n\n" + task
}

// newUtterance returns the utterance of a message. It returns nil if the
// message is not one of the instance, or if models do not get its role.
func newUtterance(m *Message, of *Instance) *utterance {
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
	meta := tapedeck.MetaOf(m.Metadata)
	return &utterance{
		step: meta.Step, given: meta.Given,
		offset: m.Offset, end: m.EndOffset, at: m.StartedAt, thread: m.Thread, invocation: m.Invocation, turn: m.Turn,
		role: role, text: textOf(m.Text, m.Parts), made: m.ID, message: true,
		prompt: payload.PromptOf(m.Role, m.Metadata) != "",
	}
}

// mayOwn reports whether u, the newest utterance, can have made a call that
// names no message.
func (u *utterance) mayOwn(k *ToolCall) bool {
	return u.role == payload.RoleAssistant && u.invocation == k.Invocation && u.turn == k.Turn && (!u.message || k.Turn > 0)
}

// canMake reports whether u can make one more call. It cannot if one of its
// calls was answered before: then the model was called again in between.
func (u *utterance) canMake(k *ToolCall) bool {
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

// grows reports whether the text or the calls of u may grow while its run is open.
func (u *utterance) grows() bool {
	return u.end == nil || u.role == payload.RoleAssistant && u.canMake(&ToolCall{Item: Item{Offset: math.MaxInt64}})
}
