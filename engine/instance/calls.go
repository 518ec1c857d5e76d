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

// meets compares a step with the calls of the thread before it is appended. A call
// with a known id, or a second result, would be a new version of the first one in
// the log, and so change a context that was already read. So they are refused. It
// returns the event if the step is already there, nil if it can be appended.
func (s *step) meets(calls []view.ToolCall, events []view.ContextEvent, i *found) (*view.ContextEvent, error) {
	switch s.Type {
	case view.ResultEvent:
		return nil, s.meetsResult(calls, events, i)
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
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the thread of %s has another tool call %.100q already", i.ID, k.ID).
				WithHint("nothing was written; give the call another id")
		}
	}
	return nil, nil
}

// meetsResult refuses the result of a call that is not in the context, or that has
// one.
func (s *step) meetsResult(calls []view.ToolCall, events []view.ContextEvent, i *found) error {
	var call *view.ToolCall // the newest call with that id, which gets the result in the log
	for n := range calls {
		if calls[n].ID == s.ToolCallID {
			call = &calls[n]
		}
	}
	if call == nil || call.Name == "" || !i.Has(&call.Item) {
		return tapedeck.Errorf(tapedeck.Invalid, "the context of %s has no tool call %.100q", i.ID, s.ToolCallID).
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

// taken returns the ids of the calls in a thread, including those of other agents.
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

// same reports whether two calls are equal, however their arguments are written.
func same(a, b payload.FunctionCall) bool {
	if a.Name == b.Name && a.Arguments == b.Arguments {
		return true
	}
	var x, y any
	return a.Name == b.Name && json.Unmarshal([]byte(a.Arguments), &x) == nil &&
		json.Unmarshal([]byte(b.Arguments), &y) == nil && reflect.DeepEqual(x, y)
}

// names gives copied calls ids that no other call of the thread has.
type names struct {
	taken map[string]bool
	now   map[string]string // the new id of the newest call, by the id in the source
}

func newNames(s view.Snapshot, to *found) *names {
	return &names{taken: taken(s.Calls, view.ContextEvents(s, to.Instance)), now: map[string]string{}}
}

func (n *names) rename(s *step) {
	for i := range s.calls {
		old := s.calls[i].ID
		id := old
		for n.taken[id] {
			id = tapedeck.NewID("call_")
		}
		n.taken[id], n.now[old], s.calls[i].ID = true, id, id
	}
	if s.Type == view.ResultEvent {
		s.ToolCallID = n.now[s.ToolCallID]
	}
}

// misshapen returns the error for content of the wrong shape. It names the member, the
// expected shape and the actual one, as far as err tells them.
func (s *step) misshapen(content json.RawMessage, err error) error {
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
