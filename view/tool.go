package view

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A ToolCall is one call of a tool by an agent. Its status is
//
//   - pending while its arguments are streamed, or after its run has ended
//     without an answer that may still arrive;
//   - running when its arguments are complete;
//   - complete or failed when it was answered;
//   - cancelled or interrupted if its run was, before an answer arrived.
//
// Each start of a call is a call of its own, also if its run uses the id again. What
// follows under the id belongs to the newest one.
type ToolCall struct {
	Item
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	MessageID string          `json:"message_id,omitempty"` // the message that made it
	Arguments string          `json:"arguments"`            // the text of the arguments so far
	Input     json.RawMessage `json:"input,omitempty"`      // the arguments, if they are complete and valid JSON
	Result    *ToolResult     `json:"result,omitempty"`     // absent before the answer
	Threads   []string        `json:"threads,omitempty"`    // threads of the sub-agents that it has started

	Half payload.Piece `json:"-"` // with which the arguments end, as in [Message]
	Made *int64        `json:"-"` // offset of the event that completed the arguments; nil before
	Step CallStep      `json:"-"`
}

// A CallStep says what the context of an agent has of a call, if that is not the usual:
// a tool_call where the call began, and a tool_result with the answer.
type CallStep struct {
	ID       string          `json:"id,omitempty"`       // its id there, if the log has another one
	Uncalled bool            `json:"uncalled,omitempty"` // only its message has it: there is no tool_call, unless Offset says where
	Offset   *int64          `json:"offset,omitempty"`
	At       *Time           `json:"at,omitempty"`     // the time of Offset
	Call     json.RawMessage `json:"call,omitempty"`   // the content of the tool_call, if it was given
	Result   json.RawMessage `json:"result,omitempty"` // that of the tool_result
}

// Pieces returns the arguments with Half.
func (k *ToolCall) Pieces() payload.Piece { return payload.Piece(k.Arguments) + k.Half }

// A ToolResult is the answer to a tool call.
type ToolResult struct {
	Offset    int64           `json:"offset"` // the offset of the event with the answer
	MessageID string          `json:"message_id,omitempty"`
	Text      string          `json:"text"`
	Parts     json.RawMessage `json:"parts,omitempty"`  // see [Message]
	Error     string          `json:"error,omitempty"`  // the reason why the tool failed, if the text does not say it
	Denied    bool            `json:"denied,omitempty"` // the user has denied the call
}

type call struct {
	ToolCall
	args     strings.Builder // ToolCall.Arguments while they grow: the pieces
	complete bool            // the arguments are complete
	maker    *message        // the message that made it; nil if it is not known
	removed  bool            // removed with its maker
}

func (c *Conversation) toolStart(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ToolCallID string `json:"toolCallId"`
		Name       string `json:"toolCallName"`
		MessageID  string `json:"parentMessageId"`
		Subagent   string `json:"subagentRunId"`
	}
	if !decode(e, &d) || d.ToolCallID == "" {
		return false
	}
	if k, ok := l.call[d.ToolCallID]; ok && k.Invocation == e.Invocation && k.Name == "" { // it was answered before it was made
		l.dropCall(k)
	}
	k := c.call(l, e, d.ToolCallID)
	k.Subagent, k.MessageID, k.Name = d.Subagent, d.MessageID, d.Name
	k.setMaker(l.maker(d.MessageID))
	return true
}

// maker returns the message that makes a call by its id: one of the agent, if it has one.
func (l *lane) maker(id string) *message {
	for kind := range told + 1 {
		if m, ok := l.message[named{kind, id}]; ok {
			return m
		}
	}
	return nil
}

// call adds a call.
func (c *Conversation) call(l *lane, e *tapedeck.Event, id string) *call {
	k := &call{ToolCall: ToolCall{Item: newItem(l, e, tapedeck.StatusPending), ID: id}}
	l.work(e.Invocation).calls[k] = struct{}{}
	l.calls.add(k)
	l.countCall(k, 1)
	l.call[id] = k
	c.settleCalls(l, e.Offset)
	return k
}

// callOf returns the call with an id, and creates it if necessary.
func (c *Conversation) callOf(l *lane, e *tapedeck.Event, id string) *call {
	if k, ok := l.call[id]; ok {
		return k
	}
	return c.call(l, e, id)
}

// setMaker sets the message that made the call; nil changes nothing.
func (k *call) setMaker(m *message) {
	if m != nil && k.maker != m {
		k.maker, k.MessageID = m, m.ID
		m.calls = append(m.calls, k)
	}
}

func (c *Conversation) toolArgs(l *lane, e *tapedeck.Event) bool {
	id, delta, ok := callDelta.decode(e.Data)
	if !ok {
		return false
	}
	k, ok := l.call[string(id)]
	if !ok {
		k = c.call(l, e, string(id))
	}
	k.args.Write(delta)
	return true
}

func (c *Conversation) toolEnd(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ToolCallID string `json:"toolCallId"`
	}
	if !decode(e, &d) {
		return false
	}
	if k, ok := l.call[d.ToolCallID]; ok {
		k.noteComplete(e)
		if l.isOpen(k) {
			k.Status = tapedeck.StatusRunning
		}
		l.planByTool(k, e)
	}
	return true
}

// planByTool sets the plan from the tool in which some agents keep their plan.
// Arguments of another shape are ignored.
func (l *lane) planByTool(k *call, e *tapedeck.Event) {
	var d struct {
		Todos []PlanEntry `json:"todos"`
	}
	if k.Name != "TodoWrite" || !jsonobj.Unpack(k.input(), &d) || d.Todos == nil {
		return
	}
	l.setPlan(e, d.Todos)
}

// input returns the arguments as JSON, nil if they are incomplete or invalid.
func (k *call) input() json.RawMessage {
	if raw := []byte(payload.Whole(k.args.String())); k.complete && nesting(raw) <= maxDepth && json.Valid(raw) {
		return raw
	}
	return nil
}

// noteComplete notes that e completed the arguments.
func (k *call) noteComplete(e *tapedeck.Event) {
	k.complete = true
	if k.Made == nil {
		offset := e.Offset // the event is not kept
		k.Made = &offset
	}
}

// restate replaces the arguments.
func (k *call) restate(e *tapedeck.Event, text string) {
	k.args.Reset()
	k.args.WriteString(text)
	k.noteComplete(e)
}

// An answer is the data of TOOL_CALL_RESULT or of a message of role tool.
type answer struct {
	ToolCallID string          `json:"toolCallId"`
	MessageID  string          `json:"messageId"`
	Content    json.RawMessage `json:"content"`
	Error      json.RawMessage `json:"error"`    // a string; some agents use other shapes
	Metadata   json.RawMessage `json:"metadata"` // see [tapedeck.Meta]
}

// duration returns the duration of the tool that its runner reported, in
// milliseconds.
func (a *answer) duration() (ms int64, ok bool) {
	if d := tapedeck.MetaOf(a.Metadata).DurationMS; d != nil && *d >= 0 && *d <= maxCount {
		return *d, true
	}
	return 0, false
}

// failure reports whether the tool failed, and why.
func (a *answer) failure() (text string, failed bool) {
	switch raw := string(a.Error); raw {
	case "", "null", "false":
		return "", tapedeck.MetaOf(a.Metadata).Error
	default:
		if json.Unmarshal(a.Error, &text) != nil {
			text = raw
		}
		return text, true
	}
}

func (c *Conversation) toolResult(l *lane, e *tapedeck.Event) bool {
	var a answer
	if !decode(e, &a) || a.ToolCallID == "" {
		return false
	}
	c.answer(l, e, a)
	return true
}

func (c *Conversation) answer(l *lane, e *tapedeck.Event, a answer) {
	k := c.callOf(l, e, a.ToolCallID)
	r := &ToolResult{Offset: e.Offset, MessageID: a.MessageID, Denied: tapedeck.MetaOf(a.Metadata).Denied}
	r.Text, r.Parts = content(a.Content)
	status := tapedeck.StatusComplete
	if text, failed := a.failure(); failed {
		r.Error, status = text, tapedeck.StatusFailed
	}
	if k.Result != nil { // restated; the first answer keeps its offset and time
		r.Offset, k.Status = k.Result.Offset, status
	} else {
		k.end(e, status)
		if ms, ok := a.duration(); ok {
			k.DurationMS = &ms
		}
	}
	k.Result, k.Step.Result = r, tapedeck.MetaOf(a.Metadata).Given
	l.finish(k.Invocation, nil, k)
}
