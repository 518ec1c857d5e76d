package channels

import (
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// thread returns the thread of the agent of e.
func thread(e *event) string {
	if e.AgentID == "" {
		return tapedeck.MainThread
	}
	return e.AgentID
}

// open returns the open run of the thread of e. If there is none, it also returns the
// event that begins one.
func (t *Translator) open(e *event) (string, []tapedeck.Event) {
	for _, r := range t.Runs {
		if r.Thread == thread(e) {
			return r.Invocation, nil
		}
	}
	id := t.newID("run_")
	t.Runs = append(slices.Clip(t.Runs), tapedeck.OpenRun{Invocation: id, Thread: thread(e)})
	begin := payload.NewEvent(payload.RunStarted{ThreadID: thread(e), RunID: id, Common: payload.Common{
		Metadata: tapedeck.Meta{Implied: true, Agent: e.AgentID}.In(nil),
	}})
	begin.Thread, begin.Invocation, begin.Actor = thread(e), id, actor(e)
	return id, []tapedeck.Event{begin}
}

// close notes the end of a run.
func (t *Translator) close(invocation string) {
	t.Runs = slices.DeleteFunc(slices.Clone(t.Runs), func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
}

func actor(e *event) string {
	if e.AgentID == "" {
		return ""
	}
	return "agent:" + e.AgentID
}

// in appends events of a run.
func (e *event) in(run string, out []tapedeck.Event, payloads ...payload.Payload) []tapedeck.Event {
	for _, p := range payloads {
		ev := payload.NewEvent(p)
		ev.Thread, ev.Invocation, ev.Actor = thread(e), run, actor(e)
		out = append(out, ev)
	}
	return out
}

// origin returns the translated event, which the event that stands for it keeps unchanged.
func (e *event) origin() payload.Attributed {
	return payload.Attributed{Common: payload.Common{RawEvent: e.raw}}
}

// implied marks an event that the one with the origin implies.
func implied() payload.Attributed {
	return payload.Attributed{Common: impliedCommon()}
}

func impliedCommon() payload.Common {
	return payload.Common{Metadata: tapedeck.Meta{Implied: true}.In(nil)}
}

// chunk translates a piece of an agent's text. The chunks of one turn are one message.
func (t *Translator) chunk(e *event) ([]tapedeck.Event, error) {
	run, out := t.open(e)
	return e.in(run, out, payload.TextMessageChunk{
		MessageID: messageID(run, e.Turn), Role: payload.RoleAssistant, Delta: e.Text, Attributed: e.origin(),
	}), nil
}

// toolCall translates a call, which is sent once or each time its status changes. Its input
// may come with any of these events. The first result is that of the call.
func (t *Translator) toolCall(e *event) ([]tapedeck.Event, error) {
	known, err := t.known(e)
	if err != nil {
		return nil, err
	}
	if known == Unknown && e.Tool == "" {
		return nil, missing(e, "tool")
	}
	failed, answers := ending(e.Status) == failedEnd, e.answers() && known != Answered
	makes := known < Made && (answers || given(e.Input))
	if known != Unknown && !makes && !answers {
		return []tapedeck.Event{t.status(view.TypeToolStatus, e)}, nil
	}
	run, out := t.open(e)
	if known == Unknown {
		out = e.in(run, out, payload.ToolCallStart{ToolCallID: e.ID, ToolCallName: e.Tool, Attributed: e.standIn(!makes)})
		t.note(e, Begun)
	}
	if makes {
		args := "{}"
		if given(e.Input) {
			args = string(e.Input)
		}
		out = e.in(run, out, payload.ToolCallArgs{ToolCallID: e.ID, Delta: payload.Piece(args), Attributed: implied()},
			payload.ToolCallEnd{ToolCallID: e.ID, Attributed: e.standIn(!answers)})
		t.note(e, Made)
	}
	if !answers {
		return out, nil
	}
	t.note(e, Answered)
	return e.in(run, out, e.result(failed)), nil
}

// answers reports whether an event of a call has its result. The output of a call that still
// runs is not all of it.
func (e *event) answers() bool {
	switch e.Status {
	case "pending", "running", "started", "streaming", "in_progress":
		return false
	}
	end := ending(e.Status)
	return end == failedEnd || end == completeEnd || given(e.Output)
}

// standIn returns the origin if an event is the last of those that e becomes: it stands for e,
// because a client that may read less of the log must not see what comes later.
func (e *event) standIn(last bool) payload.Attributed {
	if last {
		return e.origin()
	}
	return implied()
}

// result returns the result of a call.
func (e *event) result(failed bool) payload.ToolCallResult {
	ours := tapedeck.Meta{Error: failed}
	if e.Duration != nil {
		ours.DurationMS = new(int64(*e.Duration))
	}
	as := e.origin()
	as.Metadata = ours.In(nil)
	return payload.ToolCallResult{MessageID: "result_" + e.ID, ToolCallID: e.ID, Role: payload.RoleTool, Content: payload.Text(e.answer()), Attributed: as}
}

// answer returns the text of the result of a call.
func (e *event) answer() string {
	if text := textOf(e.Output); text != "" {
		return text
	}
	return textOf(e.Error)
}

// status returns an event with all members of e, in the open run of its thread if there is
// one. It is for what no event of the catalogue says.
func (t *Translator) status(typ string, e *event) tapedeck.Event {
	out := tapedeck.Event{Type: typ, Channel: e.Channel, Data: e.raw, Thread: thread(e), Actor: actor(e)}
	for _, r := range t.Runs {
		if r.Thread == thread(e) {
			out.Invocation = r.Invocation
		}
	}
	return out
}

// known returns what this request or the log knows of the call.
func (t *Translator) known(e *event) (Known, error) {
	if k, ok := t.called[thread(e)+"\x00"+e.ID]; ok {
		return k, nil
	}
	k, err := t.Called(thread(e), e.ID)
	if err == nil {
		t.note(e, k)
	}
	return k, err
}

// begun returns the calls in the thread of e that have no input yet.
func (t *Translator) begun(e *event, run string) (ids []string, err error) {
	if t.Begun != nil {
		if ids, err = t.Begun(thread(e), run); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if _, err := t.known(&event{AgentID: e.AgentID, ID: id}); err != nil {
			return nil, err
		}
	}
	ids = nil
	for key, k := range t.called {
		if id, ok := strings.CutPrefix(key, thread(e)+"\x00"); ok && k == Begun {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// note notes what is known of the call now.
func (t *Translator) note(e *event, k Known) {
	if t.called == nil {
		t.called = map[string]Known{}
	}
	key := thread(e) + "\x00" + e.ID
	t.called[key] = max(k, t.called[key])
}

// agentState begins and ends the runs of an agent. It also appends an agent.state event
// with all members of e.
func (t *Translator) agentState(e *event) ([]tapedeck.Event, error) {
	end := ending(e.Status)
	var out []tapedeck.Event
	if end == continues {
		_, out = t.open(e)
	}
	state := t.status(view.TypeAgentState, e)
	run := state.Invocation
	out = append(out, state)
	if run == "" || end == continues || end == waits {
		return out, nil
	}
	t.close(run)
	begun, err := t.begun(e, run)
	if err != nil {
		return nil, err
	}
	for _, id := range begun { // a run cannot end while a call is being made
		out = e.in(run, out, payload.ToolCallArgs{ToolCallID: id, Delta: "{}", Attributed: implied()}, payload.ToolCallEnd{ToolCallID: id, Attributed: implied()})
		t.called[thread(e)+"\x00"+id] = Made
	}
	switch end {
	case failedEnd:
		text := textOf(e.Error)
		if text == "" {
			text = e.Message
		}
		return e.in(run, out, payload.RunError{Message: text, Code: "agent", Common: impliedCommon()}), nil
	case cancelledEnd:
		return e.in(run, out, payload.RunFinished{ThreadID: thread(e), RunID: run, Outcome: &payload.Outcome{Type: payload.OutcomeCancelled}, Common: impliedCommon()}), nil
	}
	return e.in(run, out, payload.RunFinished{ThreadID: thread(e), RunID: run, Common: impliedCommon()}), nil
}

// The meaning of a status of a run or a call.
const (
	continues = iota
	waits
	completeEnd
	failedEnd
	cancelledEnd
)

// ending returns the meaning of a status. An unknown status continues.
func ending(status string) int {
	switch status {
	case "complete", "completed", "done", "finished", "success", "succeeded":
		return completeEnd
	case "error", "failed", "failure":
		return failedEnd
	case "cancelled", "canceled", "stopped", "aborted":
		return cancelledEnd
	case "idle", "paused", "waiting", "pending":
		return waits
	}
	return continues
}
