package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
)

// A fold makes a task of its events. It returns for each event the updates that a
// stream sends: a client that applies them to an earlier state of the task gets its
// later state.
type fold struct {
	ref
	begun   bool   // it has the first event of its invocation
	agent   string // of the newest run, "" if no run names one
	open    string // the invocation of the open run, "" for none
	started int64  // the offset of the RUN_STARTED of the newest run
	thread  string // of the newest run
	state   sdk.TaskState
	last    *sdk.Message // the message of the agent in the newest status; nil for none
	at      time.Time    // of the newest status
	through int64        // the offset of the newest event; -1 for none

	history   []*sdk.Message
	places    map[string]int // of the messages in history, by id
	artifacts []*text
	texts     map[string]*text     // the messages that are streamed, by invocation and id
	calls     map[string]*toolCall // the newest tool calls of the open run, by their ids in the log
	called    map[string]bool      // the ids that calls have in the task
	questions []*question          // that are pending, oldest first
}

// A text is a message that is streamed.
type text struct {
	id, role, invocation string
	text                 strings.Builder // the pieces; see whole
	halves               payload.Halves  // of the parts of the artifact
	open                 bool            // it has not ended
	artifact             sdk.ArtifactID  // "" before the first part of it is sent
}

// A toolCall is a call whose result may follow.
type toolCall struct {
	id   string // in the task; see call
	name string
	args strings.Builder
}

// A question is a permission that the agent asks for.
type question struct {
	tapedeck.Question
	offset  int64
	message *sdk.Message // shows it
}

func newFold(r ref) *fold {
	return &fold{ref: r, through: -1, state: sdk.TaskStateSubmitted, texts: map[string]*text{}, calls: map[string]*toolCall{}, called: map[string]bool{}, places: map[string]int{}}
}

// terminal reports whether the task accepts nothing more.
func (f *fold) terminal() bool { return f.invocation != "" && f.state.Terminal() }

// rests reports whether the agent does nothing now: the task has ended, or it waits for
// input.
func (f *fold) rests() bool { return f.state.Terminal() || f.state == sdk.TaskStateInputRequired }

// apply adds an event to the task and returns its updates.
func (f *fold) apply(e *tapedeck.Event) []sdk.Event {
	if !f.has(e) || e.Offset <= f.through {
		return nil
	}
	f.through = e.Offset
	if to, ok := folds[e.Type]; ok {
		return to(f, e)
	}
	return nil
}

// folds has the method that applies an event, by the type of the event. Reasoning,
// state, plans and usage have no counterpart in the protocol.
var folds = map[string]func(*fold, *tapedeck.Event) []sdk.Event{
	tapedeck.MessageAdded:        (*fold).messageAdded,
	tapedeck.RunStarted:          (*fold).runStarted,
	tapedeck.TextMessageStart:    (*fold).textStart,
	tapedeck.TextMessageContent:  (*fold).textContent,
	tapedeck.TextMessageEnd:      (*fold).textEnd,
	tapedeck.ToolCallStart:       (*fold).callStart,
	tapedeck.ToolCallArgs:        (*fold).callArgs,
	tapedeck.ToolCallEnd:         (*fold).callEnd,
	tapedeck.ToolCallResult:      (*fold).callResult,
	tapedeck.PermissionRequested: (*fold).permissionRequested,
	tapedeck.PermissionAnswered:  (*fold).permissionAnswered,
	tapedeck.RunFinished:         (*fold).runFinished,
	tapedeck.RunError:            (*fold).runError,
}

// A part has the data of the events that a streamed message or call consists of.
type part struct {
	MessageID  string          `json:"messageId"`
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"toolCallName"`
	Role       string          `json:"role"`
	Delta      payload.Piece   `json:"delta"`
	Content    json.RawMessage `json:"content"`
}

func partOf(e *tapedeck.Event) (p part) {
	_ = json.Unmarshal(e.Data, &p) // a member of another type counts as absent, and so does an erased one
	return p
}

func (f *fold) runStarted(e *tapedeck.Event) []sdk.Event {
	var d struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	f.open, f.started, f.thread, f.agent = e.Invocation, e.Offset, e.ThreadName(), tapedeck.MetaOf(d.Metadata).Agent
	return f.status(e, sdk.TaskStateWorking, nil)
}

func (f *fold) textStart(e *tapedeck.Event) []sdk.Event {
	p := partOf(e)
	if p.MessageID == "" {
		return nil
	}
	p.Role = cmp.Or(p.Role, payload.RoleAssistant)
	t := f.texts[e.Invocation+divider+p.MessageID]
	if t == nil || t.role != p.Role {
		t = &text{id: p.MessageID, role: p.Role, invocation: e.Invocation}
		f.texts[e.Invocation+divider+p.MessageID] = t
	}
	t.open = true
	return nil
}

func (f *fold) textContent(e *tapedeck.Event) []sdk.Event {
	p := partOf(e)
	t := f.texts[e.Invocation+divider+p.MessageID]
	if t == nil || p.Delta == "" {
		return nil
	}
	t.text.WriteString(string(p.Delta))
	if t.role != payload.RoleAssistant {
		return nil
	}
	return f.artifact(e, t, t.halves.Next(p.Delta))
}

func (t *text) whole() string { return payload.Whole(t.text.String()) }

// sent returns the parts of the artifact that were sent, joined.
func (t *text) sent() string {
	return payload.Whole(strings.TrimSuffix(t.text.String(), string(t.halves.Held)))
}

// artifact returns the update that appends a part to the artifact of a message.
func (f *fold) artifact(e *tapedeck.Event, t *text, delta string) []sdk.Event {
	if delta == "" {
		return nil // it was half of a character
	}
	return []sdk.Event{f.part(e, t, delta, t.artifact != "")}
}

// part returns the update that appends a part to the artifact of a message, or else
// replaces the artifact.
func (f *fold) part(e *tapedeck.Event, t *text, delta string, more bool) *sdk.TaskArtifactUpdateEvent {
	u := &sdk.TaskArtifactUpdateEvent{
		TaskID: sdk.TaskID(f.id()), ContextID: f.session, Append: more, Metadata: metadata(keyInvocation, e.Invocation),
		Artifact: &sdk.Artifact{Parts: sdk.ContentParts{sdk.NewTextPart(delta)}},
	}
	if t.artifact == "" {
		t.artifact = sdk.ArtifactID(f.messageID(t.id, e.Invocation))
		f.artifacts = append(f.artifacts, t)
	}
	u.Artifact.ID = t.artifact
	return u
}

func (f *fold) textEnd(e *tapedeck.Event) []sdk.Event {
	t := f.texts[e.Invocation+divider+partOf(e).MessageID]
	if t == nil || t.text.Len() == 0 {
		return nil
	}
	t.open = false
	return f.textComplete(e, t)
}

// textComplete returns the updates of a text that has ended: the message, and then the whole
// text as the last part of its artifact. Pages of kagent and ADK read only that part. Until
// it comes, kagent shows the text of the status.
func (f *fold) textComplete(e *tapedeck.Event, t *text) []sdk.Event {
	t.halves.End()
	out := f.said(e, t.role, t.id, sdk.NewTextPart(t.whole()))
	if t.role != payload.RoleAssistant {
		return out
	}
	last := f.part(e, t, t.whole(), false)
	last.LastChunk = true
	return append(out, last)
}

// closeTexts closes the messages of the agent that a run has left open, and returns them. A
// front end shows the history, not the artifacts, so they must come there.
func (f *fold) closeTexts(invocation string) (list []*text) {
	for _, t := range f.artifacts {
		if t.open && t.invocation == invocation {
			t.open = false
			list = append(list, t)
		}
	}
	return list
}

// said returns the update of a whole message, "" if its role has no counterpart.
func (f *fold) said(e *tapedeck.Event, role, id string, parts ...*sdk.Part) []sdk.Event {
	switch role {
	case "", payload.RoleAssistant, payload.RoleTool:
		return f.status(e, f.state, f.message(e, sdk.MessageRoleAgent, id, parts...))
	case payload.RoleUser:
		return f.status(e, f.state, f.message(e, sdk.MessageRoleUser, id, parts...))
	}
	return nil
}

func (f *fold) messageAdded(e *tapedeck.Event) []sdk.Event {
	var d payload.MessageAdded
	if json.Unmarshal(e.Data, &d) != nil || d.Message.ID == "" {
		return nil // it was erased
	}
	m := &d.Message
	var parts []*sdk.Part
	if s := m.Text(); s != "" && m.Role != payload.RoleTool {
		parts = append(parts, sdk.NewTextPart(s))
	}
	switch m.Role {
	case payload.RoleUser:
		if f.open == "" {
			f.state = sdk.TaskStateSubmitted
		}
	case payload.RoleTool:
		parts = append(parts, responsePart(f.answered(m.ToolCallID), m.Text()))
	case payload.RoleAssistant:
		return f.wholeMessage(e, m)
	}
	if len(parts) == 0 {
		return nil
	}
	return f.said(e, m.Role, m.ID, parts...)
}

// wholeMessage returns the updates of a message of the agent that was not streamed, which
// are those of one that was: a text with its artifact, and its calls. It replaces a message
// of the run that has its id.
func (f *fold) wholeMessage(e *tapedeck.Event, m *payload.Message) (out []sdk.Event) {
	key := e.Invocation + divider + m.ID
	t := f.texts[key]
	if replaced := t != nil && t.artifact != ""; replaced || m.Text() != "" {
		if t == nil || t.role != payload.RoleAssistant {
			t = &text{id: m.ID, role: payload.RoleAssistant, invocation: e.Invocation}
			f.texts[key] = t
		}
		t.text.Reset()
		t.text.WriteString(m.Text())
		t.halves = payload.Halves{}
		out = append(out, f.part(e, t, m.Text(), false))
		out = append(out, f.textComplete(e, t)...)
	}
	for _, k := range m.ToolCalls {
		c := f.calls[k.ID]
		if c == nil {
			c = f.call(e, k.ID, k.Function.Name)
		}
		c.args.Reset()
		c.args.WriteString(k.Function.Arguments)
		out = append(out, f.callComplete(e, c)...)
	}
	return out
}

func (f *fold) callStart(e *tapedeck.Event) []sdk.Event {
	if p := partOf(e); p.ToolCallID != "" {
		f.call(e, p.ToolCallID, p.Name)
	}
	return nil
}

// call begins a call. An id that a call of the task has already is changed as in AG-UI.
func (f *fold) call(e *tapedeck.Event, id, name string) *toolCall {
	c := &toolCall{id: id, name: name}
	for f.called[c.id] { // more than once if the agent uses an id that we make
		c.id = aguiwire.Rename(c.id, e.Offset)
	}
	f.calls[id], f.called[c.id] = c, true
	return c
}

func (f *fold) callArgs(e *tapedeck.Event) []sdk.Event {
	p := partOf(e)
	if c := f.calls[p.ToolCallID]; c != nil {
		c.args.WriteString(string(p.Delta))
	}
	return nil
}

func (f *fold) callEnd(e *tapedeck.Event) []sdk.Event {
	c := f.calls[partOf(e).ToolCallID]
	if c == nil {
		return nil
	}
	return f.callComplete(e, c)
}

// callComplete returns the update of a tool call whose arguments have all arrived.
func (f *fold) callComplete(e *tapedeck.Event, c *toolCall) []sdk.Event {
	return f.said(e, payload.RoleAssistant, "call"+divider+c.id, callPart(c))
}

func (f *fold) callResult(e *tapedeck.Event) []sdk.Event {
	p := partOf(e)
	if p.ToolCallID == "" {
		return nil
	}
	c := f.answered(p.ToolCallID)
	return f.said(e, payload.RoleTool, "result"+divider+c.id, responsePart(c, (&payload.Message{Content: p.Content}).Text()))
}

// callPart returns a tool call in the form of ADK.
func callPart(c *toolCall) *sdk.Part {
	return dataPart("function_call", map[string]any{"id": c.id, "name": c.name, "args": valueOf(payload.Whole(c.args.String()))})
}

func responsePart(c *toolCall, content string) *sdk.Part {
	return dataPart("function_response", map[string]any{"id": c.id, "name": c.name, "response": map[string]any{"result": valueOf(content)}})
}

// answered returns the call that an answer is for. A call of an earlier run has no name.
func (f *fold) answered(id string) *toolCall {
	if c := f.calls[id]; c != nil {
		return c
	}
	return &toolCall{id: id}
}

// dataPart returns data of a type of ADK.
func dataPart(typ string, data map[string]any) *sdk.Part {
	p := sdk.NewDataPart(data)
	p.Metadata = map[string]any{"adk_type": typ, "kagent_type": typ}
	return p
}

// valueOf returns JSON as it is, and other text as a string.
func valueOf(s string) any {
	if b := []byte(s); len(bytes.TrimSpace(b)) > 0 && json.Valid(b) {
		return json.RawMessage(b)
	}
	return s
}

func (f *fold) permissionRequested(e *tapedeck.Event) []sdk.Event {
	q := &question{offset: e.Offset}
	if json.Unmarshal(e.Data, &q.Question) != nil || q.ID == "" {
		return nil
	}
	f.questions = append(f.questions, q)
	words := q.Message
	if words == "" {
		words = "May the agent continue?"
	}
	var d map[string]any
	_ = json.Unmarshal(e.Data, &d) // it has just been decoded
	q.message = f.message(e, sdk.MessageRoleAgent, q.ID, sdk.NewTextPart(words), dataPart("permission", d))
	if len(f.questions) > 1 {
		return nil // the task shows the oldest, because a message answers that one
	}
	return f.status(e, sdk.TaskStateInputRequired, q.message)
}

func (f *fold) permissionAnswered(e *tapedeck.Event) []sdk.Event {
	var d tapedeck.Choice
	_ = json.Unmarshal(e.Data, &d) // see partOf
	i := slices.IndexFunc(f.questions, func(q *question) bool { return q.ID == d.ID })
	if i < 0 {
		return nil
	}
	f.questions = slices.Delete(f.questions, i, i+1)
	switch {
	case i > 0, f.open == "": // the task shows another question, or its run has ended
		return nil
	case len(f.questions) > 0:
		return f.status(e, sdk.TaskStateInputRequired, f.questions[0].message)
	}
	return f.status(e, sdk.TaskStateWorking, nil)
}

func (f *fold) runFinished(e *tapedeck.Event) []sdk.Event {
	var d struct {
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	f.ended()
	switch d.Outcome.Type {
	case "cancelled":
		return f.status(e, sdk.TaskStateCanceled, nil)
	case "interrupt":
		return f.status(e, sdk.TaskStateInputRequired, nil)
	}
	return f.status(e, sdk.TaskStateCompleted, nil)
}

// keyError begins the id of the message with the error of a run.
const keyError = "error" + divider

func (f *fold) runError(e *tapedeck.Event) []sdk.Event {
	var d struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	var out []sdk.Event
	for _, t := range f.closeTexts(e.Invocation) {
		out = append(out, f.textComplete(e, t)...)
	}
	f.ended()
	if d.Message == "" {
		d.Message = "the run failed"
	}
	return append(out, f.status(e, sdk.TaskStateFailed, f.message(e, sdk.MessageRoleAgent, keyError+e.Invocation, sdk.NewTextPart(d.Message)))...)
}

// ended forgets what belongs to the open run.
func (f *fold) ended() {
	f.open, f.questions = "", nil
	clear(f.calls)
}
