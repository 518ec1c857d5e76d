package task

import (
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
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
		out = append(out, draft{typeToolStart, c.start(k.ID, e)})
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
// arrived before the end of its input, answered started the tool, and callEnd completes
// it.
func (r *run) callEnd(e *tapedeck.Event) []draft {
	id := partOf(e).ToolCallID
	c := r.calls[id]
	switch {
	case c == nil:
		return nil
	case c.early != nil:
		return r.answered(e, *c.early)
	case c.started:
		return nil
	}
	return drafts(typeToolStart, c.start(id, e))
}

func (c *toolCall) start(id string, e *tapedeck.Event) toolStartData {
	c.started, c.at = true, e.Time
	d := toolStartData{Name: c.name, ID: id, Input: toolInput(payload.Whole(c.args.String()))}
	c.args.Reset()
	return d
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

// answered completes a tool. A client must see the start of a tool before its end. If
// the input of the call is not complete yet, answered starts the tool and keeps the
// answer; callEnd completes it.
func (r *run) answered(e *tapedeck.Event, a toolAnswer) []draft {
	c := r.calls[a.ToolCallID]
	switch {
	case a.ToolCallID == "":
		return nil
	case c == nil:
		c = &toolCall{at: e.Time} // its run has ended
	case !c.started:
		c.early = &a
		return drafts(typeToolStart, c.start(a.ToolCallID, e))
	case c.early != nil && e.Type != tapedeck.ToolCallEnd:
		return nil // a second answer
	}
	delete(r.calls, a.ToolCallID)
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
	return drafts(typeToolComplete, d)
}

// plan encodes a plan as a call of todoTool, from which clients read their list,
// unless the agent makes such calls itself.
func (r *run) plan(e *tapedeck.Event) []draft {
	var d payload.PlanUpdated
	if r.usesTodoTool || json.Unmarshal(e.Data, &d) != nil {
		return nil
	}
	input, err := json.Marshal(map[string][]payload.PlanEntry{"todos": httpapi.OrEmpty(d.Entries)})
	if err != nil {
		return nil
	}
	return drafts(typeToolStart, toolStartData{Name: todoTool, Input: input, ID: fmt.Sprintf("plan_%d", e.Offset)})
}
