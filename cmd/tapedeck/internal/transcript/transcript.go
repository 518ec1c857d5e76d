// Package transcript prints the events of a session as a conversation for people
// in a terminal.
package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/payload"
)

// A Transcript prints events as a conversation while they arrive: the text of
// messages as it streams, a line for each tool call, the plan when it changes.
type Transcript struct {
	pen         terminal.Pen
	streaming   string                    // the id of the message that is being streamed, "" at the beginning of a line
	started     map[string]time.Time      // tool calls without a result
	names       map[string]string         // of tool calls without a result
	args        map[string]payload.Piece  // of tool calls, while they are streamed
	halves      map[string]payload.Halves // by thread and message: half of a character that waits for the other half
	open        map[string]tapedeck.Event // runs
	thread      string                    // thread of the text that was printed last, "" at the beginning
	eventThread string                    // thread of the current event
	lastErased  string                    // the message or tool call that was last printed as erased
	plans       map[string]string         // by thread: the plan that was printed last
}

// New returns a transcript that is written with a pen.
func New(p terminal.Pen) *Transcript {
	return &Transcript{
		pen: p, started: map[string]time.Time{}, names: map[string]string{},
		args: map[string]payload.Piece{}, halves: map[string]payload.Halves{}, open: map[string]tapedeck.Event{}, plans: map[string]string{},
	}
}

// An eventData has the members of all events that a transcript shows.
type eventData struct {
	MessageID    string `json:"messageId"`
	Delta        json.RawMessage
	Role         string
	ToolCallID   string `json:"toolCallId"`
	ToolCallName string `json:"toolCallName"`
	Content      json.RawMessage
	Error        json.RawMessage
	Message      json.RawMessage
	Code         string
	Outcome      struct{ Type string }
	Entries      []planEntry
	Metadata     struct {
		Tapedeck struct{ Error json.RawMessage }
	}
}

// failed reports whether a tool's result is an error.
func (d *eventData) failed() bool {
	for _, raw := range [...]json.RawMessage{d.Error, d.Metadata.Tapedeck.Error} {
		if s := string(raw); s != "" && s != "null" && s != "false" {
			return true
		}
	}
	return false
}

// ToolFailed reports whether e, the result of a tool call, is an error.
func ToolFailed(e *tapedeck.Event) bool {
	var d eventData
	return json.Unmarshal(e.Data, &d) == nil && d.failed()
}

// Print prints an event, if it belongs to the conversation.
func (t *Transcript) Print(e *tapedeck.Event) error {
	if t.eventThread = e.ThreadName(); e.Channel == tapedeck.ChannelSession {
		t.eventThread = t.thread // it belongs to all threads, or names one itself
	}
	switch e.Type { // their data has other shapes
	case tapedeck.PermissionRequested:
		return t.question(e)
	case tapedeck.PermissionAnswered:
		return t.answered(e)
	}
	var d eventData
	if e.Data != nil && json.Unmarshal(e.Data, &d) != nil {
		return nil //nolint:nilerr // an event that does not match its type is not shown
	}
	if e.Erased() && erasable[e.Type] {
		return t.erased(&d)
	}
	switch e.Type {
	case tapedeck.MessageAdded:
		return t.message(e, d.Message)
	case "TEXT_MESSAGE_CONTENT":
		return t.stream("", d.MessageID, Piece(d.Delta))
	case "REASONING_MESSAGE_CONTENT":
		return t.stream(terminal.Dim, d.MessageID, Piece(d.Delta))
	case "TEXT_MESSAGE_END":
		return t.endText("", d.MessageID)
	case "REASONING_MESSAGE_END":
		return t.endText(terminal.Dim, d.MessageID)
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT":
		return t.tool(e, &d)
	case tapedeck.PlanUpdated:
		return t.plan(d.Entries)
	case "RUN_FINISHED", "RUN_ERROR":
		return t.ended(e, &d)
	}
	if j, ok := e.Jump(); ok {
		return t.jump(&j)
	}
	return nil
}

// erasable has the types of events that the transcript prints as "(erased)". It does not
// have the ends of runs: after an erasure they still have the outcome.
var erasable = map[string]bool{
	tapedeck.MessageAdded: true, "TEXT_MESSAGE_CONTENT": true, "REASONING_MESSAGE_CONTENT": true,
	"TOOL_CALL_START": true, "TOOL_CALL_ARGS": true, "TOOL_CALL_END": true, "TOOL_CALL_RESULT": true, tapedeck.PlanUpdated: true,
}

// erased prints once for a message or tool call that it was erased.
func (t *Transcript) erased(d *eventData) error {
	id := cmp.Or(d.ToolCallID, d.MessageID)
	if id != "" && id == t.lastErased {
		return nil
	}
	t.lastErased = id
	return t.Line("%s", t.pen.Paint(terminal.Dim, "(erased)"))
}

// Streaming reports whether the last line is not complete: a message is being
// streamed.
func (t *Transcript) Streaming() bool { return t.streaming != "" }

// jump prints that events above were reverted.
func (t *Transcript) jump(j *tapedeck.Jump) error {
	where := ""
	if j.Thread != "" && (j.Thread != tapedeck.MainThread || !j.Attempt) {
		where = "thread " + j.Thread + ": "
	}
	if j.Attempt {
		return t.Line("%s", t.pen.Paint(terminal.Dim, fmt.Sprintf("↻ %sagain from offset %d", where, j.To)))
	}
	return t.Line("%s", t.pen.Paint(terminal.Yellow, fmt.Sprintf("↶ %sback to the state before offset %d", where, j.To)))
}

// Line prints a line of its own.
func (t *Transcript) Line(format string, args ...any) error {
	if err := t.change(); err != nil {
		return err
	}
	if t.streaming != "" {
		format = "\n" + format
	}
	t.streaming = ""
	return t.pen.Printf(format+"\n", args...)
}

// change prints the name of the thread if the text comes from another thread than the
// text before. The task of a sub-agent must not look like a message of the user.
func (t *Transcript) change() error {
	if t.eventThread == t.thread {
		return nil
	}
	first := t.thread == ""
	t.thread = t.eventThread
	if first {
		return nil
	}
	begin := ""
	if t.streaming != "" {
		begin = "\n"
	}
	t.streaming = ""
	return t.pen.Printf("%s%s\n", begin, t.pen.Paint(terminal.Dim, "· thread "+t.thread))
}

// message prints a complete message with its tool calls.
func (t *Transcript) message(e *tapedeck.Event, raw json.RawMessage) error {
	var m payload.Message
	if json.Unmarshal(raw, &m) != nil {
		return nil //nolint:nilerr // as in Print
	}
	if metadata, _ := json.Marshal(m.Metadata); payload.PromptOf(m.Role, metadata) != "" { // it is not for people
		return t.Line("%s", t.pen.Paint(terminal.Dim, "system: "+terminal.Brief(Text(m.Content), t.rest("system"))))
	}
	said := terminal.Clean(Text(m.Content))
	switch {
	case tapedeck.MetaOf(m.Metadata).Call != "": // its call was printed with the message that has it
		return nil
	case m.Role == payload.RoleUser:
		return t.Line("%s %s", t.pen.Paint(terminal.Bold, "›"), t.pen.Paint(terminal.Bold, said))
	case m.Role == payload.RoleTool && t.names[m.ToolCallID] != "":
		return t.answer(e, m.ToolCallID, cmp.Or(Text(m.Content), m.Error), m.Error != "" || tapedeck.MetaOf(m.Metadata).Error)
	case said != "" || len(m.ToolCalls) == 0:
		if err := t.Line("%s %s", t.pen.Paint(terminal.Dim, m.Role+":"), t.pen.Paint(terminal.Dim, said)); err != nil {
			return err
		}
	}
	for _, k := range m.ToolCalls {
		if k.ID == "" || t.names[k.ID] != "" {
			continue // it was erased, or printed while it was streamed
		}
		t.started[k.ID], t.names[k.ID], t.args[k.ID] = e.Time, k.Function.Name, payload.Piece(k.Function.Arguments)
		if err := t.called(k.ID); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transcript) stream(s terminal.Style, id string, delta payload.Piece) error {
	key := t.eventThread + "\x00" + id
	halves := t.halves[key]
	text := halves.Next(delta)
	if delete(t.halves, key); halves.Held != "" {
		t.halves[key] = halves
	}
	return t.words(s, id, text)
}

// endText prints that the rest of a character never came.
func (t *Transcript) endText(s terminal.Style, id string) error {
	key := t.eventThread + "\x00" + id
	halves, ok := t.halves[key]
	if !ok {
		return nil
	}
	delete(t.halves, key)
	return t.words(s, id, halves.End())
}

// words continues a message.
func (t *Transcript) words(s terminal.Style, id, text string) error {
	if err := t.change(); err != nil {
		return err
	}
	if t.streaming != id {
		if t.streaming != "" {
			if err := t.pen.Printf("\n"); err != nil {
				return err
			}
		}
		t.streaming = id
	}
	out := terminal.Clean(text)
	if s != "" {
		out = t.pen.Paint(s, out)
	}
	return t.pen.Printf("%s", out)
}

func (t *Transcript) tool(e *tapedeck.Event, d *eventData) error {
	id := d.ToolCallID
	switch e.Type {
	case "TOOL_CALL_START":
		t.started[id], t.names[id] = e.Time, d.ToolCallName
	case "TOOL_CALL_ARGS":
		t.args[id] += Piece(d.Delta)
	case "TOOL_CALL_END":
		return t.called(id)
	case "TOOL_CALL_RESULT":
		return t.answer(e, id, Text(d.Content), d.failed())
	}
	return nil
}

// called prints a tool call whose arguments are complete.
func (t *Transcript) called(id string) error {
	if t.names[id] == "TodoWrite" {
		return t.todos(id)
	}
	err := t.Line("  %s %s %s", t.pen.Paint(terminal.Yellow, "⚙"), t.pen.Paint(terminal.Yellow, terminal.Brief(t.names[id], 40)), t.pen.Paint(terminal.Dim, terminal.Brief(t.args[id].Whole(), t.rest(t.names[id]))))
	delete(t.args, id)
	return err
}

// answer prints the result of a tool call.
func (t *Transcript) answer(e *tapedeck.Event, id, said string, failed bool) error {
	took := ""
	if at, ok := t.started[id]; ok {
		took = " " + e.Time.Sub(at).Round(time.Millisecond).String()
	}
	mark := t.pen.Paint(terminal.Green, "✓")
	if failed {
		mark = t.pen.Paint(terminal.Red, "✗")
	}
	delete(t.started, id)
	defer delete(t.names, id)
	return t.Line("  %s %s%s %s", mark, terminal.Brief(t.names[id], 40), t.pen.Paint(terminal.Dim, took), t.pen.Paint(terminal.Dim, terminal.Brief(said, t.rest(t.names[id]+took))))
}

// rest returns how many characters are left on a line after name.
func (t *Transcript) rest(name string) int { return max(20, t.pen.Width-8-len(name)) }

// todos prints a call of TodoWrite, the tool in which some agents keep their plan.
func (t *Transcript) todos(id string) error {
	var args struct{ Todos []planEntry }
	err := json.Unmarshal([]byte(t.args[id].Whole()), &args)
	delete(t.args, id)
	if err != nil || len(args.Todos) == 0 {
		return t.Line("  %s %s", t.pen.Paint(terminal.Yellow, "⚙"), t.pen.Paint(terminal.Yellow, "TodoWrite"))
	}
	return t.plan(args.Todos)
}

// A planEntry is a step of a plan.
type planEntry struct{ Content, Status string }

func (t *Transcript) plan(entries []planEntry) error {
	var b strings.Builder
	for _, x := range entries {
		mark := map[string]string{"completed": "✓", "in_progress": "→", "cancelled": "✗"}[x.Status]
		if mark == "" {
			mark = "○"
		}
		fmt.Fprintf(&b, "\n    %s %s", mark, terminal.Brief(x.Content, t.rest("")))
	}
	if t.plans[t.eventThread] == b.String() { // some agents call TodoWrite and also send the plan
		return nil
	}
	t.plans[t.eventThread] = b.String()
	return t.Line("  %s%s", t.pen.Paint(terminal.Blue, "plan"), b.String())
}

func (t *Transcript) ended(e *tapedeck.Event, d *eventData) error {
	switch {
	case e.Type == "RUN_ERROR" && (d.Code == tapedeck.CodeInterrupted || d.Code == tapedeck.CodeLeaseExpired):
		return t.Line("%s %s", t.pen.Paint(terminal.Yellow, "interrupted:"), terminal.Clean(Text(d.Message)))
	case e.Type == "RUN_ERROR":
		why := terminal.Clean(Text(d.Message))
		if e.Erased() {
			why = "(erased)"
		}
		return t.Line("%s %s", t.pen.Paint(terminal.Red, "failed:"), why)
	case d.Outcome.Type == "cancelled":
		return t.Line("%s", t.pen.Paint(terminal.Yellow, "cancelled"))
	case d.Outcome.Type == "interrupt":
		return t.Line("%s", t.pen.Paint(terminal.Yellow, "waiting for an answer"))
	}
	return t.Line("%s", t.pen.Paint(terminal.Green, "done"))
}

// Text returns the string in raw, or the text of its parts, or its JSON.
func Text(raw json.RawMessage) string {
	return Piece(raw).Whole()
}

// Piece is [Text] for a piece of a text, which may end in the middle of a character.
func Piece(raw json.RawMessage) payload.Piece {
	var s payload.Piece
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text payload.Piece }
	if json.Unmarshal(raw, &parts) == nil {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(string(p.Text))
		}
		return payload.Piece(b.String())
	}
	return payload.Piece(raw)
}
