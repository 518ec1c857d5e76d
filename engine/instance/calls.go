package instance

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// checkCalls compares a step with the tool calls of its thread before the step is
// appended. It refuses a call whose id another call has, and a second result of a call:
// in the log they would replace the first one, and change a context that was read
// already. If the context has the same call already, checkCalls returns its event.
// Otherwise it returns nil, and the step can be appended.
func (s *step) checkCalls(calls []view.ToolCall, events []view.ContextEvent, target *found) (*view.ContextEvent, error) {
	switch s.Type {
	case view.ResultEvent:
		return nil, s.checkResult(calls, events, target)
	case view.CallEvent:
		n := slices.IndexFunc(events, func(e view.ContextEvent) bool { return e.Type == view.CallEvent && e.ToolCallID == s.ToolCallID })
		if n >= 0 && same(readCall(events[n].Content).Function, s.calls[0].Function) {
			return &events[n], nil
		}
	}
	ids := taken(calls, events)
	for n, k := range s.calls {
		if slices.ContainsFunc(s.calls[:n], func(other payload.ToolCall) bool { return other.ID == k.ID }) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "two tool calls of the %s have the id %.100q", s.Type, k.ID)
		}
		if ids[k.ID] {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the thread of %s has another tool call %.100q already", target.ID, k.ID).
				WithHint("nothing was written; give the call another id")
		}
	}
	return nil, nil
}

// checkResult refuses a result if the context does not have its call, and if the call
// has a result already.
func (s *step) checkResult(calls []view.ToolCall, events []view.ContextEvent, target *found) error {
	var call *view.ToolCall // the newest call with that id, which gets the result in the log
	for n := range calls {
		if calls[n].ID == s.ToolCallID {
			call = &calls[n]
		}
	}
	if call == nil || call.Name == "" || !target.Has(&call.Item) {
		return tapedeck.Errorf(tapedeck.Invalid, "the context of %s has no tool call %.100q", target.ID, s.ToolCallID).
			WithHint("append the call first")
	}
	if call.Result == nil {
		return nil
	}
	at := slices.IndexFunc(events, func(e view.ContextEvent) bool {
		return e.Type == view.ResultEvent && e.ToolCallID == s.ToolCallID && e.Offset == call.Result.Offset
	})
	return tapedeck.Errorf(tapedeck.Conflict, "tool call %.100q has a result already: event %d of the context", s.ToolCallID, at).
		WithHint("nothing was written; to replace the result, delete the events after %d first", at-1)
}

// taken returns the ids that calls of the thread have, including the calls of other agents.
func taken(calls []view.ToolCall, events []view.ContextEvent) map[string]bool {
	ids := map[string]bool{}
	for n := range calls {
		ids[calls[n].ID] = true
	}
	for n := range events {
		ids[events[n].ToolCallID] = true // a call without an id has one in the view
	}
	return ids
}

// same reports whether two calls are equal. Spaces and the order of members in their
// arguments do not matter.
func same(a, b payload.FunctionCall) bool {
	if a.Name == b.Name && a.Arguments == b.Arguments {
		return true
	}
	var x, y any
	return a.Name == b.Name && json.Unmarshal([]byte(a.Arguments), &x) == nil &&
		json.Unmarshal([]byte(b.Arguments), &y) == nil && reflect.DeepEqual(x, y)
}

// A callRenamer gives copied calls ids that no other call of the thread has.
type callRenamer struct {
	taken map[string]bool
	newID map[string]string // of the newest call that has the key as its id in the source
}

func newCallRenamer(s view.Snapshot, target *found) *callRenamer {
	return &callRenamer{taken: taken(s.Calls, view.ContextEvents(s, target.Instance)), newID: map[string]string{}}
}

func (n *callRenamer) rename(s *step) {
	for i := range s.calls {
		old := s.calls[i].ID
		id := old
		for n.taken[id] {
			id = tapedeck.NewID("call_")
		}
		n.taken[id], n.newID[old], s.calls[i].ID = true, id, id
	}
	if s.Type == view.ResultEvent {
		s.ToolCallID = n.newID[s.ToolCallID]
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
