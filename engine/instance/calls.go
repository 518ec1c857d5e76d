package instance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// check compares a step with the tool calls of its context before the step is appended. The
// id of a call that has its result may be used again, by the next turn of the agent: then it
// is a new call. check refuses a call with the id of one that has no result yet, and a second
// result of a call: these change a context that was read already. If the context has the same
// tool_call already, check returns its number, otherwise -1.
func (k *known) check(s *step, target *found) (int, error) {
	switch s.Type {
	case view.ResultEvent:
		return -1, k.checkResult(s, target)
	case view.CallEvent:
		return k.checkCall(s)
	}
	for n, one := range s.calls {
		if slices.ContainsFunc(s.calls[:n], func(other payload.ToolCall) bool { return other.ID == one.ID }) {
			return -1, tapedeck.Errorf(tapedeck.Invalid, "two tool calls of the %s have the id %.100q", s.Type, one.ID)
		}
		if c, ok := k.calls[one.ID]; ok && c.result < 0 {
			return -1, openCall(one.ID).WithHint("nothing was written; append a message before its tool_call events, and the result of a call before its id is used again")
		}
	}
	return -1, nil
}

func openCall(id string) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Conflict, "the context has another tool call %.100q, which has no result yet", id)
}

// checkCall is check for a tool_call.
func (k *known) checkCall(s *step) (int, error) {
	f := &s.calls[0].Function
	c, ok := k.calls[s.ToolCallID]
	s.made = false // it may be tried again
	switch {
	case !ok || c.result >= 0 && (c.event >= 0 || c.result < k.said):
		return -1, nil
	case c.result >= 0:
		return -1, tapedeck.Errorf(tapedeck.Conflict, "tool call %.100q has its result already: event %d of the context", s.ToolCallID, c.result).
			WithHint("nothing was written; append a tool_call before its tool_result")
	case c.name != f.Name:
		return -1, openCall(s.ToolCallID).WithHint("nothing was written; a tool_call has the name that it has in its message, and a result comes before the next call with the id")
	case c.event < 0:
		s.made = true
		return -1, nil
	case c.sum != sumOf(f):
		return -1, openCall(s.ToolCallID).WithHint("nothing was written; append its result before the next call with the id")
	}
	return int(c.event), nil
}

// checkResult refuses a result if the context does not have its call, and if the call
// has a result already.
func (k *known) checkResult(s *step, target *found) error {
	c, ok := k.calls[s.ToolCallID]
	if !ok {
		return tapedeck.Errorf(tapedeck.Invalid, "the context of %s has no tool call %.100q", target.ID, s.ToolCallID).
			WithHint("append the call first")
	}
	if c.result < 0 {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "tool call %.100q has a result already: event %d of the context", s.ToolCallID, c.result).
		WithHint("nothing was written; to replace the result, delete the events after %d first", c.result-1)
}

// sumOf returns the checksum of a call. Calls that are equal have the same one: spaces and
// the order of members in their arguments do not matter.
func sumOf(f *payload.FunctionCall) [32]byte {
	var v any
	arguments := f.Arguments
	if json.Unmarshal([]byte(arguments), &v) == nil {
		if plain, err := json.Marshal(v); err == nil {
			arguments = string(plain)
		}
	}
	return sha256.Sum256([]byte(f.Name + "\x00" + arguments))
}

// A namer gives the calls of steps their ids in the log. There, all calls of a thread have
// ids of their own: the agents of a thread share it, and models use an id again.
type namer struct {
	k    *known
	used map[string]bool   // the ids in the log that it has given
	ids  map[string]string // the id in the log of the newest call with an id in the context
}

func (k *known) namer() *namer {
	return &namer{k: k, used: map[string]bool{}, ids: map[string]string{}}
}

// name gives the calls of a step, and what it answers, their ids in the log.
func (n *namer) name(s *step) {
	s.ids = nil
	if s.made || s.Type == view.ResultEvent {
		id, ok := n.ids[s.ToolCallID]
		if !ok {
			id = n.k.calls[s.ToolCallID].id
		}
		s.ids = []string{id}
		return
	}
	for _, c := range s.calls {
		id := c.ID
		if n.k.ids[id] || n.used[id] {
			id = tapedeck.NewID("call_")
		}
		n.used[id], n.ids[c.ID] = true, id
		s.ids = append(s.ids, id)
	}
}

// shapeError returns the error for content of the wrong shape. It names the member, the
// expected shape and the actual one, as far as err tells them.
func (s *step) shapeError(content json.RawMessage, err error) error {
	var shape *json.UnmarshalTypeError
	switch {
	case len(content) == 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the %s has no content", s.Type)
	case !errors.As(err, &shape):
		return tapedeck.Errorf(tapedeck.Invalid, "the content of the %s does not fit its type", s.Type).Because(err)
	case shape.Field == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the content of the %s must be an object, and is %s", s.Type, article(shape.Value))
	}
	want := "a string"
	if shape.Type.Kind() == reflect.Slice {
		want = "an array"
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the member %q in the content of the %s must be %s, and is %s", shape.Field, s.Type, want, article(shape.Value))
}

func article(shape string) string {
	if shape == "array" || shape == "object" {
		return "an " + shape
	}
	return "a " + shape
}

// readCall reads a call in the form of a tool_call or of OpenAI.
func readCall(raw json.RawMessage) payload.ToolCall {
	type function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var d struct {
		ID string `json:"id"`
		function
		Function *function `json:"function"`
	}
	_ = json.Unmarshal(raw, &d) // a call without id and name is refused
	if d.Function != nil {
		d.function = *d.Function
	}
	return payload.ToolCall{ID: d.ID, Type: "function", Function: payload.FunctionCall{Name: d.Name, Arguments: textOf(d.Arguments)}}
}

// textOf returns arguments, or the answer of a tool, as text. Some programs write them as JSON.
func textOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it cannot fail: raw was decoded before
	return b.String()
}
