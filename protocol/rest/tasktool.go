package rest

import (
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// todoTool is the tool whose input clients of the task protocol show as the
// list of what is to be done.
const todoTool = "TodoWrite"

func (r *taskRun) callStart(e *tapedeck.Event) []told {
	r.mark(e)
	p := pieceOf(e)
	r.call(p.ToolCallID, p.Name, e)
	return nil
}

// call notes that the agent calls a tool.
func (r *taskRun) call(id, name string, e *tapedeck.Event) *taskCall {
	c := &taskCall{name: name, at: e.Time}
	open(&r.calls, id, c)
	r.turn.tools = append(r.turn.tools, name)
	r.todos = r.todos || name == todoTool
	return c
}

// whole tells of a message of the agent that came as a whole, and of each call
// that it makes.
func (r *taskRun) whole(e *tapedeck.Event, m *payload.Message) (said []told) {
	r.mark(e)
	if text := m.Text(); text != "" {
		r.turn.said = preview(text)
		said = tell(taskMessage, finalMessage(text))
	}
	for i := range m.ToolCalls {
		k := &m.ToolCalls[i]
		if k.ID == "" || r.calls[k.ID] != nil { // it was erased, or is being streamed
			continue
		}
		c := r.call(k.ID, k.Function.Name, e)
		c.args.WriteString(k.Function.Arguments)
		said = append(said, told{taskToolStart, c.start(k.ID, e)})
	}
	return said
}

func (r *taskRun) callArgs(e *tapedeck.Event) []told {
	p := pieceOf(e)
	if c := r.calls[p.ToolCallID]; c != nil {
		c.args.WriteString(p.Delta)
	}
	return nil
}

// callEnd tells of a call when its input is complete. If the answer was there
// before, that has told of it already.
func (r *taskRun) callEnd(e *tapedeck.Event) []told {
	id := pieceOf(e).ToolCallID
	c := r.calls[id]
	switch {
	case c == nil:
		return nil
	case c.early != nil:
		return r.answered(e, *c.early)
	case c.started:
		return nil
	}
	return tell(taskToolStart, c.start(id, e))
}

func (c *taskCall) start(id string, e *tapedeck.Event) toolStartData {
	c.started, c.at = true, e.Time
	d := toolStartData{Name: c.name, ID: id, Input: toolInput(c.args.String())}
	c.args.Reset()
	return d
}

// toolInput returns the arguments of a call as an object, whatever the model has
// made of them.
func toolInput(args string) json.RawMessage {
	var object map[string]json.RawMessage
	switch {
	case args == "":
		return json.RawMessage("{}")
	case json.Unmarshal([]byte(args), &object) == nil && object != nil:
		return json.RawMessage(args)
	}
	raw, _ := json.Marshal(map[string]string{"raw": args}) // a string can be encoded
	return raw
}

// A toolAnswer has the members of TOOL_CALL_RESULT.
type toolAnswer struct {
	ToolCallID string          `json:"toolCallId"`
	Content    json.RawMessage `json:"content"`
	Error      string          `json:"error"`
	Metadata   struct {
		Tapedeck struct {
			Error  bool   `json:"error"`
			Millis *int64 `json:"durationMs"`
		} `json:"tapedeck"`
	} `json:"metadata"`

	text string // of the content
}

func (r *taskRun) callResult(e *tapedeck.Event) []told {
	var a toolAnswer
	_ = json.Unmarshal(e.Data, &a) // see pieceOf
	a.text = (&payload.Message{Content: a.Content}).Text()
	return r.answered(e, a)
}

// answered tells what a tool has answered. A client must have heard of the call
// before: if its input is not complete yet, this event tells of the call, and
// the end of its input of the answer.
func (r *taskRun) answered(e *tapedeck.Event, a toolAnswer) []told {
	c := r.calls[a.ToolCallID]
	switch {
	case a.ToolCallID == "":
		return nil
	case c == nil:
		c = &taskCall{at: e.Time} // of a run that is over
	case !c.started:
		c.early = &a
		return tell(taskToolStart, c.start(a.ToolCallID, e))
	case c.early != nil && e.Type != tapedeck.ToolCallEnd:
		return nil // answered twice
	}
	delete(r.calls, a.ToolCallID)
	d := toolCompleteData{
		Name: c.name, ID: a.ToolCallID, Result: a.text, Millis: millis(c.at, e.Time),
		IsError: a.Error != "" || a.Metadata.Tapedeck.Error,
	}
	if d.Result == "" {
		d.Result = a.Error
	}
	if ms := a.Metadata.Tapedeck.Millis; ms != nil {
		d.Millis = max(*ms, 0)
	}
	return tell(taskToolComplete, d)
}

// plan shows a plan as the call that clients read their list from, unless the
// agent makes such calls itself.
func (r *taskRun) plan(e *tapedeck.Event) []told {
	var d payload.PlanUpdated
	if r.todos || json.Unmarshal(e.Data, &d) != nil {
		return nil
	}
	input, err := json.Marshal(map[string][]payload.PlanEntry{"todos": orEmpty(d.Entries)})
	if err != nil {
		return nil
	}
	return tell(taskToolStart, toolStartData{Name: todoTool, Input: input, ID: fmt.Sprintf("plan_%d", e.Offset)})
}
