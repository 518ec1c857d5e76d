package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// todoTool is the tool whose input clients show as the list of tasks.
const todoTool = "TodoWrite"

func (r *run) callStart(e *tapedeck.Event) []draft {
	r.enterTurn(e)
	p := partOf(e)
	r.call(p.ToolCallID, p.Name, e)
	return nil
}

// call adds a call of a tool.
func (r *run) call(id, name string, e *tapedeck.Event) *toolCall {
	c := &toolCall{name: name, at: e.Time, offset: e.Offset}
	add(&r.calls, id, c)
	r.turn.tools = append(r.turn.tools, name)
	r.usesTodoTool = r.usesTodoTool || name == todoTool
	return c
}

// wholeMessage encodes a message of the agent that was appended as a whole, and each
// call that it makes.
func (r *run) wholeMessage(e *tapedeck.Event, m *payload.Message) (out []draft) {
	r.enterTurn(e)
	if text := m.Text(); text != "" {
		r.turn.text = preview(text)
		out = drafts(typeMessage, finalMessage(text))
	}
	for i := range m.ToolCalls {
		k := &m.ToolCalls[i]
		if k.ID == "" || r.calls[k.ID] != nil { // it was erased, or it is streamed
			continue
		}
		c := r.call(k.ID, k.Function.Name, e)
		c.args.WriteString(k.Function.Arguments)
		if part := i + 1; part < perOffset+startPart { // the others start with their answers
			out = append(out, draft{typeToolStart, r.begin(c, k.ID, e), part})
		}
	}
	return out
}

func (r *run) callArgs(e *tapedeck.Event) []draft {
	p := partOf(e)
	if c := r.calls[p.ToolCallID]; c != nil {
		c.args.WriteString(string(p.Delta))
	}
	return nil
}

// callEnd starts the tool, because its input is complete. If the answer of the tool
// arrived before, it has started the tool.
func (r *run) callEnd(e *tapedeck.Event) []draft {
	id := partOf(e).ToolCallID
	c := r.calls[id]
	switch {
	case c == nil:
		return nil
	case c.answered:
		delete(r.calls, id)
		return nil
	case c.started, isCutOff(c.args.String()):
		return nil // a call that is cut off starts when it is answered; after a cancel it never is
	}
	return drafts(typeToolStart, r.begin(c, id, e))
}

// isCutOff reports whether the arguments of a call lack their end. They do if the run was
// cancelled while they came.
func isCutOff(args string) bool {
	trimmed := strings.TrimSpace(args)
	return strings.HasPrefix(trimmed, "{") && !json.Valid([]byte(trimmed))
}

// begin starts the tool of a call.
func (r *run) begin(c *toolCall, id string, e *tapedeck.Event) toolStartData {
	c.started, c.at = true, e.Time
	args := payload.Whole(c.args.String())
	c.args.Reset()
	if plan, ok := planOf(c.name, args); ok {
		if i := slices.Index(r.turn.tools, c.name); i >= 0 {
			r.turn.tools[i] = todoTool
		}
		c.name, r.usesTodoTool = todoTool, true
		return toolStartData{Name: todoTool, ID: id, Input: plan}
	}
	return toolStartData{Name: c.name, ID: id, Input: toolInput(args)}
}

// planOf returns the input of todoTool for a call of another tool that sets the plan, such as
// todo_write: clients know only that one. It reports false for a call that does not.
func planOf(name, args string) (json.RawMessage, bool) {
	entries, ok := narrate.Todos(name, json.RawMessage(args))
	if !ok || name == todoTool {
		return nil, false
	}
	var input struct{ Todos json.RawMessage }
	if _ = json.Unmarshal([]byte(args), &input); input.Todos != nil {
		return json.RawMessage(args), true // it has more than the entries
	}
	return todoInput(entries), true
}

// todoInput returns a plan as the input of todoTool.
func todoInput(entries []payload.PlanEntry) json.RawMessage {
	raw, err := json.Marshal(map[string][]payload.PlanEntry{"todos": httpapi.OrEmpty(entries)})
	if err != nil {
		return json.RawMessage("{}") // never happens: the entries were decoded
	}
	return raw
}

// toolInput returns the arguments of a call as an object, also if the model wrote no
// valid JSON.
func toolInput(args string) json.RawMessage {
	var object map[string]json.RawMessage
	switch {
	case args == "":
		return json.RawMessage("{}")
	case json.Unmarshal([]byte(args), &object) == nil && object != nil:
		return json.RawMessage(args)
	}
	raw, _ := json.Marshal(map[string]string{"raw": args}) // strings can be encoded
	return raw
}

// A toolAnswer is the data of TOOL_CALL_RESULT.
type toolAnswer struct {
	ToolCallID string          `json:"toolCallId"`
	Content    json.RawMessage `json:"content"`
	Error      string          `json:"error"`
	Metadata   json.RawMessage `json:"metadata"`

	text string        // of the content
	meta tapedeck.Meta // of the metadata
}

func (r *run) callResult(e *tapedeck.Event) []draft {
	var a toolAnswer
	_ = json.Unmarshal(e.Data, &a) // see partOf
	a.text, a.meta = (&payload.Message{Content: a.Content}).Text(), tapedeck.MetaOf(a.Metadata)
	return r.answered(e, a)
}

// answered completes a tool. A client must see the start of a tool before its end, so
// answered also starts a tool that has not started, with the input so far.
func (r *run) answered(e *tapedeck.Event, a toolAnswer) (out []draft) {
	c := r.calls[a.ToolCallID]
	switch {
	case a.ToolCallID == "":
		return nil
	case c == nil:
		c = &toolCall{at: e.Time} // its run has ended
	case c.answered:
		return nil
	case c.started:
		delete(r.calls, a.ToolCallID)
	default:
		out, c.answered = drafts(typeToolStart, r.begin(c, a.ToolCallID, e)), true
	}
	d := toolCompleteData{
		Name: c.name, ID: a.ToolCallID, Result: a.text, Millis: millis(c.at, e.Time),
		IsError: a.Error != "" || a.meta.Error,
	}
	if d.Result == "" {
		d.Result = a.Error
	}
	if ms := a.meta.DurationMS; ms != nil {
		d.Millis = max(*ms, 0)
	}
	return append(out, draft{typeToolComplete, d, len(out)})
}

// plan encodes a plan as a call of todoTool, from which clients read their list,
// unless the agent makes such calls itself.
func (r *run) plan(e *tapedeck.Event) []draft {
	var d payload.PlanUpdated
	if r.usesTodoTool || json.Unmarshal(e.Data, &d) != nil {
		return nil
	}
	id := fmt.Sprintf("plan_%d", e.Offset)
	return []draft{
		{typeToolStart, toolStartData{Name: todoTool, Input: todoInput(d.Entries), ID: id}, 0},
		{typeToolComplete, toolCompleteData{Name: todoTool, ID: id}, 1},
	}
}
