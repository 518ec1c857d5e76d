package view

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A ToolCall is one use of a tool by the agent. Its status is
//
//   - pending while nobody carries it out: its arguments are still coming, or
//     its run has ended without an answer to it and the answer is to come;
//   - running when its arguments are complete;
//   - complete or failed when it was answered;
//   - cancelled or interrupted if its run was, before an answer came.
//
// Ids are as in [Message].
type ToolCall struct {
	Item
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	MessageID string          `json:"message_id,omitempty"` // the message that made it
	Arguments string          `json:"arguments"`            // their text, so far
	Input     json.RawMessage `json:"input,omitempty"`      // the arguments, when they are complete and valid JSON
	Result    *ToolResult     `json:"result,omitempty"`     // absent before it was answered
	Threads   []string        `json:"threads,omitempty"`    // of the sub-agents that it has started

	Made *int64 `json:"-"` // the offset of the event that completed the arguments; nil before
}

// A ToolResult is the answer to a tool call.
type ToolResult struct {
	Offset    int64           `json:"offset"` // of the event that brought it
	MessageID string          `json:"message_id,omitempty"`
	Text      string          `json:"text"`
	Parts     json.RawMessage `json:"parts,omitempty"` // see [Message]
	Error     string          `json:"error,omitempty"` // why it failed, if that is not in the text
}

type call struct {
	ToolCall
	args     strings.Builder // ToolCall.Arguments, growing
	complete bool            // no more of them is to come
	maker    *message        // the message that made it; nil if that is not there
	gone     bool            // with the maker
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
	k, ok := l.call[d.ToolCallID]
	if ok && k.Invocation == e.Invocation {
		k.reopen(tapedeck.StatusPending)
		k.complete, k.Made, k.Result = false, nil, nil
		l.work(e.Invocation).calls[k] = struct{}{}
		return true
	}
	k = c.call(l, e, d.ToolCallID)
	k.Subagent, k.MessageID, k.Name = d.Subagent, d.MessageID, d.Name
	k.madeBy(l.message[d.MessageID])
	return true
}

// call adds a call.
func (c *Conversation) call(l *lane, e *tapedeck.Event, id string) *call {
	k := &call{ToolCall: ToolCall{Item: item(l, e, tapedeck.StatusPending), ID: id}}
	l.work(e.Invocation).calls[k] = struct{}{}
	l.calls.add(k)
	l.countCall(k, 1)
	l.call[id] = k
	c.settleCalls(l, e.Offset)
	return k
}

// known returns the call of that id, adding it if there is none.
func (c *Conversation) known(l *lane, e *tapedeck.Event, id string) *call {
	if k, ok := l.call[id]; ok {
		return k
	}
	return c.call(l, e, id)
}

// madeBy sets the message that made the call, nil if it is not known.
func (k *call) madeBy(m *message) {
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
		k.completedBy(e)
		if l.isOpen(k) {
			k.Status = tapedeck.StatusRunning
		}
		l.planByTool(k, e)
	}
	return true
}

// planByTool takes the plan from the tool with which some agents keep it. What
// else its arguments may be is not a plan.
func (l *lane) planByTool(k *call, e *tapedeck.Event) {
	var d struct {
		Todos []PlanEntry `json:"todos"`
	}
	if k.Name != "TodoWrite" || !jsonobj.Unpack(k.input(), &d) || d.Todos == nil {
		return
	}
	l.setPlan(e, d.Todos)
}

// input returns the arguments as JSON, nil if they are not complete or not JSON.
func (k *call) input() json.RawMessage {
	if raw := []byte(k.args.String()); k.complete && nesting(raw) <= maxDepth && json.Valid(raw) {
		return raw
	}
	return nil
}

// completedBy notes that no more arguments are to come after e.
func (k *call) completedBy(e *tapedeck.Event) {
	k.complete = true
	if k.Made == nil {
		offset := e.Offset // the event is not kept
		k.Made = &offset
	}
}

// restate sets the arguments to text.
func (k *call) restate(e *tapedeck.Event, text string) {
	k.args.Reset()
	k.args.WriteString(text)
	k.completedBy(e)
}

// An answer is the data of TOOL_CALL_RESULT, or a message of role tool.
type answer struct {
	ToolCallID string          `json:"toolCallId"`
	MessageID  string          `json:"messageId"`
	Content    json.RawMessage `json:"content"`
	Error      json.RawMessage `json:"error"` // a string; of another shape from some agents
	Metadata   toolMetadata    `json:"metadata"`
}

type toolMetadata struct {
	Tapedeck struct {
		Error      bool            `json:"error"` // it failed; the content says why
		DurationMS json.RawMessage `json:"durationMs"`
	} `json:"tapedeck"`
}

// took returns how long the runner says that the tool took.
func (m *toolMetadata) took() (ms int64, ok bool) {
	ok = json.Unmarshal(m.Tapedeck.DurationMS, &ms) == nil && len(m.Tapedeck.DurationMS) > 0 && ms >= 0 && ms < 1<<53
	return ms, ok && string(m.Tapedeck.DurationMS) != "null"
}

// failure returns why a tool failed, if it did.
func (a *answer) failure() (text string, failed bool) {
	switch raw := string(a.Error); raw {
	case "", "null", "false":
		return "", a.Metadata.Tapedeck.Error
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
	k := c.known(l, e, a.ToolCallID)
	r := &ToolResult{Offset: e.Offset, MessageID: a.MessageID}
	r.Text, r.Parts = content(a.Content)
	status := tapedeck.StatusComplete
	if text, failed := a.failure(); failed {
		r.Error, status = text, tapedeck.StatusFailed
	}
	if k.Result != nil { // restated; it was answered when it was
		r.Offset, k.Status = k.Result.Offset, status
	} else {
		k.end(e, status)
		if ms, ok := a.Metadata.took(); ok {
			k.DurationMS = &ms
		}
	}
	k.Result = r
	l.settle(k.Invocation, nil, k)
}
