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

// check compares a step with the tool calls of its thread before the step is appended. It
// refuses a call with the id of another call, and a second result of a call: in the log they
// would replace the first one, and change a context that was read already. If the context
// has the same tool_call already, check returns its number, otherwise -1.
func (k *known) check(s *step, target *found) (int, error) {
	switch s.Type {
	case view.ResultEvent:
		return -1, k.checkResult(s, target)
	case view.CallEvent:
		c, f := k.calls[s.ToolCallID], &s.calls[0].Function
		if s.made = c.own && c.sum == sumOf(f.Name, f.Arguments); !s.made {
			break
		}
		if c.event < 0 && c.result >= 0 {
			return -1, tapedeck.Errorf(tapedeck.Conflict, "tool call %.100q has its result already: event %d of the context", s.ToolCallID, c.result).
				WithHint("nothing was written; append a tool_call before its tool_result")
		}
		return int(c.event), nil
	}
	for n, one := range s.calls {
		if slices.ContainsFunc(s.calls[:n], func(other payload.ToolCall) bool { return other.ID == one.ID }) {
			return -1, tapedeck.Errorf(tapedeck.Invalid, "two tool calls of the %s have the id %.100q", s.Type, one.ID)
		}
		if _, taken := k.calls[one.ID]; taken {
			return -1, tapedeck.Errorf(tapedeck.Conflict, "the thread of %s has another tool call %.100q already", target.ID, one.ID).
				WithHint("nothing was written; give the call another id")
		}
	}
	return -1, nil
}

// checkResult refuses a result if the context does not have its call, and if the call
// has a result already.
func (k *known) checkResult(s *step, target *found) error {
	c := k.calls[s.ToolCallID]
	if !c.own {
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
func sumOf(name, arguments string) [32]byte {
	var v any
	if json.Unmarshal([]byte(arguments), &v) == nil {
		if plain, err := json.Marshal(v); err == nil {
			arguments = string(plain)
		}
	}
	return sha256.Sum256([]byte(name + "\x00" + arguments))
}

// A callRenamer gives copied calls ids that no other call of the thread has.
type callRenamer struct {
	to    *known            // the target
	used  map[string]bool   // the new ids of copied calls
	newID map[string]string // of the newest call that has the key as its id in the source
	made  map[string]bool   // the new ids of calls that a copied message has and no tool_call yet
}

// rename gives the calls of a step the ids that they have in the copy.
func (n *callRenamer) rename(s *step) error {
	old, renamed := s.ToolCallID, false
	switch id := n.newID[old]; {
	case s.Type == view.CallEvent && n.made[id]:
		s.made, s.calls[0].ID, s.ToolCallID = true, id, id
		delete(n.made, id)
	case s.Type == view.ResultEvent:
		s.ToolCallID = id
	default:
		for i := range s.calls {
			c := &s.calls[i]
			free := n.free(c.ID)
			renamed = renamed || free != c.ID
			n.newID[c.ID], c.ID = free, free
			n.made[free] = s.Type == view.AssistantMessage
		}
		if s.Type == view.CallEvent {
			s.ToolCallID = s.calls[0].ID
		}
	}
	if renamed || s.ToolCallID != old {
		return s.keepRenamed()
	}
	return nil
}

// free returns an id that no call of the target has: the one that is wanted, if it is free.
func (n *callRenamer) free(id string) string {
	for {
		if _, taken := n.to.calls[id]; !taken && !n.used[id] {
			n.used[id] = true
			return id
		}
		id = tapedeck.NewID("call_")
	}
}

// keepRenamed keeps the content that was given, with the new ids of its calls.
func (s *step) keepRenamed() error {
	var d tapedeck.Members
	if s.given == nil {
		return nil
	}
	if err := json.Unmarshal(s.given, &d); err != nil {
		return err
	}
	switch s.Type {
	case view.ResultEvent:
		if d["tool_call_id"] != nil {
			d["tool_call_id"] = payload.Text(s.ToolCallID)
		}
	case view.CallEvent:
		d["id"] = payload.Text(s.ToolCallID)
	case view.AssistantMessage:
		var calls []tapedeck.Members
		_ = json.Unmarshal(d["tool_calls"], &calls) // it was read before
		for i := range calls {
			calls[i]["id"] = payload.Text(s.calls[i].ID)
		}
		if len(calls) > 0 {
			d["tool_calls"], _ = json.Marshal(calls)
		}
	}
	raw, err := json.Marshal(d)
	if err == nil {
		s.keep(raw)
	}
	return err
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
	return payload.ToolCall{ID: d.ID, Type: "function", Function: payload.FunctionCall{Name: d.Name, Arguments: argumentsOf(d.Arguments)}}
}

// argumentsOf returns arguments as text. Some programs write them as JSON.
func argumentsOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it cannot fail: raw was decoded before
	return b.String()
}
