package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// maxHistory is the limit of the history that an agent receives as text, in bytes.
const maxHistory = 200 << 10

// A turn is one invocation of the agent.
type turn struct {
	runner *Runner
	client client
	in     tapedeck.Invocation
	n      *narrate.Narrator

	task    sdk.TaskID
	where   place
	state   sdk.TaskState
	reason  string             // what the agent said about the state
	said    map[string]string  // the text of each artifact and message that is in the log
	settled map[string]settled // the messages that were handled, by their ids
	called  map[string]bool    // the tool calls that an earlier process has recorded; true if they are answered
	series  int                // how often partial messages were followed by the whole one
	heard   int                // how many events have arrived
}

// A settled is what was last handled of a message.
type settled struct {
	text  string
	parts int
	id    string // its key in said; "" if another message or artifact has said it, or if it has no text
}

func newTurn(r *Runner, c client, in tapedeck.Invocation, n *narrate.Narrator) *turn {
	return &turn{runner: r, client: c, in: in, n: n, said: map[string]string{}, settled: map[string]settled{}, called: map[string]bool{}}
}

// begin sends the task and follows it until the agent rests.
func (t *turn) begin(ctx context.Context) error {
	at := t.runner.place(&t.in)
	words, err := t.words(ctx, at.conversation)
	if err != nil {
		return err
	}
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(words))
	m.ID, m.ContextID, m.TaskID = t.in.ID, at.conversation, sdk.TaskID(at.task)
	broken := t.consume(t.client.SendStreamingMessage(ctx, &sdk.SendMessageRequest{Message: m}))
	if broken != nil && t.heard == 0 {
		return t.refused(broken)
	}
	return t.follow(ctx, broken)
}

// follow listens to the task until the agent rests, through disconnects. broken is why
// the stream before it has ended; nil if it ended by itself.
func (t *turn) follow(ctx context.Context, broken error) error {
	for attempts := 0; !rests(t.state) && !t.n.Over() && ctx.Err() == nil; attempts++ {
		if t.task == "" {
			return t.refused(broken)
		}
		if attempts == maxAttempts {
			return t.refused(broken)
		}
		if !wait(ctx, t.runner.options.Retry<<attempts) {
			return nil
		}
		before := t.heard
		if broken = t.reconnect(ctx); t.heard > before {
			attempts = 0
		}
	}
	return t.outcome()
}

// words returns what the agent is told. An agent that does not know the conversation
// gets it as text.
func (t *turn) words(ctx context.Context, conversation string) (string, error) {
	if conversation != "" || t.in.History == nil {
		return t.in.Task, nil
	}
	before, err := narrate.History(ctx, t.in.Thread, maxHistory, t.in.History(ctx))
	if err != nil || before == "" {
		return t.in.Task, err
	}
	t.n.Lossy("the agent has no conversation of its own with the whole history", len(before))
	return before + "\n\n" + runner.TaskAfterHistory(&t.in), nil
}

// reconnect continues a stream that has ended early. An agent that has ended the task
// meanwhile is asked for it.
func (t *turn) reconnect(ctx context.Context) error {
	err := t.consume(t.client.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: t.task}))
	if rests(t.state) || t.n.Over() {
		return nil
	}
	now, failed := t.client.GetTask(ctx, &sdk.GetTaskRequest{ID: t.task})
	if failed != nil {
		return errors.Join(err, failed)
	}
	if rests(now.Status.State) {
		t.heard++
		t.snapshot(now)
	}
	return err
}

// consume records the events of a stream, until the agent rests.
func (t *turn) consume(events iter.Seq2[sdk.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		t.heard++
		switch e := e.(type) {
		case *sdk.Task:
			t.snapshot(e)
		case *sdk.TaskArtifactUpdateEvent:
			t.locate(e.TaskID, e.ContextID)
			t.artifact(e.Artifact, e.Append)
			if e.LastChunk {
				t.n.EndMessage("")
			}
		case *sdk.TaskStatusUpdateEvent:
			t.locate(e.TaskID, e.ContextID)
			t.status(e.Status, e.Metadata)
		case *sdk.Message:
			t.locate("", e.ContextID)
			t.message(e, false)
			t.state = sdk.TaskStateCompleted
		}
		if t.n.Over() || rests(t.state) {
			return nil
		}
	}
	return nil
}

// locate notes where the agent keeps the conversation and the task. The log has the
// task, so that a restarted server finds it.
func (t *turn) locate(task sdk.TaskID, conversation string) {
	if conversation != "" && conversation != t.where.conversation {
		t.where = place{conversation: conversation}
		t.n.Link(t.runner.link(), t.where.native())
	}
	if task != "" && task != t.task {
		t.task = task
		t.n.Event(payload.Custom{Name: taskEvent, Value: narrate.Text(string(task))})
	}
}

// snapshot records what a task has and the log does not. Its history can have a message in
// several versions, the newest last.
func (t *turn) snapshot(s *sdk.Task) {
	t.locate(s.ID, s.ContextID)
	newest := map[string]*sdk.Message{}
	for _, m := range append(slices.Clip(s.History), s.Status.Message) {
		if m != nil && !isPartial(m.Metadata) {
			newest[messageID(m)] = m
		}
	}
	began := false // the history may have messages of earlier turns of the task
	for _, m := range s.History {
		switch {
		case m == nil:
		case m.Role == sdk.MessageRoleUser:
			began = m.ID == t.in.ID
		case began && !isPartial(m.Metadata): // it has the whole, too
			t.message(newest[messageID(m)], false)
		}
	}
	for _, a := range s.Artifacts {
		if a != nil && (rests(s.Status.State) || !strings.HasPrefix(t.said[artifactID(a)], textOf(a.Parts))) { // otherwise it may be older
			t.artifact(a, false)
		}
	}
	t.status(s.Status, nil)
}

func (t *turn) status(s sdk.TaskStatus, meta map[string]any) {
	t.state = s.State
	if m := s.Message; m != nil && m.Role != sdk.MessageRoleUser {
		t.reason = textOf(m.Parts)
		if s.State != sdk.TaskStateFailed && s.State != sdk.TaskStateRejected { // there it is the error
			t.message(m, isPartial(meta) || isPartial(m.Metadata))
		}
	}
	if s.State == sdk.TaskStateInputRequired && t.task != "" {
		t.where.task = string(t.task)
		t.n.Link(t.runner.link(), t.where.native())
	}
}

// isPartial reports whether metadata marks a message as a part of one that follows.
func isPartial(meta map[string]any) bool {
	return meta["adk_partial"] == true || meta["kagent_partial"] == true
}

// artifact records the text that an artifact has gained, or with which it was replaced.
func (t *turn) artifact(a *sdk.Artifact, more bool) {
	if a == nil {
		return
	}
	id, text := artifactID(a), textOf(a.Parts)
	if more {
		text = t.said[id] + text
	}
	t.say(id, text)
	t.data(a.Parts)
}

func artifactID(a *sdk.Artifact) string { return cmp.Or(short(string(a.ID)), "artifact") }

// say records the text that something has now.
func (t *turn) say(id, text string) {
	if rest, ok := strings.CutPrefix(text, t.said[id]); ok {
		t.n.Say("", id, rest)
	} else {
		t.n.Replace(id, text)
	}
	t.said[id] = text
}

// part returns the id of the message that partial messages make.
func (t *turn) part() string {
	if t.series == 0 {
		return "partial"
	}
	return "partial " + strconv.Itoa(t.series)
}

// messageID returns the id of a message, made of its text if it has none.
func messageID(m *sdk.Message) string {
	if m.ID == "" {
		return "of " + hashOf(textOf(m.Parts))
	}
	return short(m.ID)
}

// message records a message of the agent. Many agents say the same as an artifact and as a
// message, or in parts and then as a whole, and some send a message again when it has grown.
func (t *turn) message(m *sdk.Message, partial bool) {
	text := textOf(m.Parts)
	if partial {
		t.say(t.part(), t.said[t.part()]+text)
		return
	}
	own := messageID(m)
	before := t.settled[own]
	now := settled{text, len(m.Parts), before.id}
	if before == now {
		return
	}
	partly, begun := t.said[t.part()]
	switch {
	case text == "" || text == before.text:
	case before.id != "":
		t.say(before.id, text)
	case begun && strings.HasPrefix(text, partly) && (text == partly || !t.hasSaid(text)):
		now.id = t.part()
		t.say(now.id, text)
		t.series++
	case !t.hasSaid(text):
		now.id = "message " + own
		t.say(now.id, text)
		if begun {
			t.series++
		}
	}
	t.settled[own] = now
	t.n.EndMessage("")
	t.data(m.Parts[min(before.parts, len(m.Parts)):])
}

// hasSaid reports whether the log has a text.
func (t *turn) hasSaid(text string) bool {
	for _, s := range t.said {
		if s == text {
			return true
		}
	}
	return false
}

// data records the tool calls in the form of ADK, and other data unchanged.
func (t *turn) data(parts sdk.ContentParts) {
	for _, p := range parts {
		if p == nil {
			continue
		}
		switch v := p.Content.(type) {
		case sdk.Text, nil:
		case sdk.Data:
			t.tool(typeOf(p.Metadata), v.Value)
		default:
			if raw, err := json.Marshal(p); err == nil {
				t.n.Raw("a2a", raw)
			}
		}
	}
}

func typeOf(meta map[string]any) string {
	for _, key := range []string{"adk_type", "kagent_type"} {
		if s, ok := meta[key].(string); ok {
			return s
		}
	}
	return ""
}

func (t *turn) tool(typ string, value any) {
	raw, err := json.Marshal(value)
	var d struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Args     json.RawMessage `json:"args"`
		Response json.RawMessage `json:"response"`
	}
	if err != nil || json.Unmarshal(raw, &d) != nil || d.ID == "" {
		typ = ""
	}
	d.ID = short(d.ID)
	switch typ {
	case "function_call":
		if _, known := t.called[d.ID]; !known && !t.n.HasTool(d.ID) {
			t.n.Tool(narrate.Call{ID: d.ID, Name: d.Name})
			t.n.Input(d.ID, d.Args)
		}
	case "function_response":
		switch answered, known := t.called[d.ID]; {
		case t.n.HasTool(d.ID):
			t.n.Answered(d.ID, narrate.Answer{Content: narrate.Text(answerOf(d.Response))})
		case known && !answered:
			t.called[d.ID] = true
			t.n.Event(payload.ToolCallResult{
				MessageID: t.in.ID + ".t." + d.ID, ToolCallID: t.in.ID + ".c." + d.ID, // as the narrator would
				Content: narrate.Text(answerOf(d.Response)), Role: payload.RoleTool,
			})
		}
	default:
		if err == nil {
			t.n.Raw("a2a", raw)
		}
	}
}

// answerOf returns the result in an answer, or else all of it.
func answerOf(response json.RawMessage) string {
	if r := narrate.Pointer(response, "/result"); r != nil {
		return narrate.String(r)
	}
	return narrate.String(response)
}

func textOf(parts sdk.ContentParts) string {
	var b strings.Builder
	for _, p := range parts {
		if p != nil {
			b.WriteString(p.Text())
		}
	}
	return b.String()
}

// outcome returns the error of a task that did not succeed.
func (t *turn) outcome() error {
	said := ""
	if t.reason != "" {
		said = ": " + narrate.Brief(t.reason, t.runner.secrets)
	}
	switch t.state {
	case sdk.TaskStateFailed:
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent has failed%s", said)
	case sdk.TaskStateRejected:
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent has rejected the task%s", said)
	case sdk.TaskStateCanceled:
		return tapedeck.Errorf(tapedeck.Unavailable, "somebody else has cancelled the task of the agent%s", said)
	case sdk.TaskStateAuthRequired:
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent asks for credentials%s", said).WithHint("set headers in its configuration")
	}
	return nil
}

// refused returns the error of an agent that cannot be reached or has answered with an
// error.
func (t *turn) refused(err error) error {
	if err == nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the stream of the agent ends before the agent has finished")
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s cannot be reached: %s", t.runner.options.Name, narrate.Unreached(err, t.runner.secrets)).Because(err)
}

// cancel tells the agent to stop. Its answer does not matter: the run ends anyway.
func (t *turn) cancel(ctx context.Context) {
	if t.task == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.runner.options.Stop)
	defer cancel()
	_, _ = t.client.CancelTask(ctx, &sdk.CancelTaskRequest{ID: t.task})
}

// wait waits for a time. It reports false if ctx is done before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
