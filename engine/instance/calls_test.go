package instance_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// head returns the offset after the newest event of a session.
func (w *world) head(session string) int64 {
	w.Helper()
	s, err := w.views.Snapshot(w.Context(), session, view.Query{})
	if err != nil {
		w.Fatal(err)
	}
	return s.At
}

// TestCollidingCallsAreRefused: events in a context do not change, and a refused
// call writes nothing.
func TestCollidingCallsAreRefused(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	w.add(i, user, asks, calls, result, answer)
	head := w.head("ses")
	for _, tt := range []struct {
		typ, content string
		kind         tapedeck.Kind
		want         string
	}{
		{"tool_result", `{"tool_call_id":"c1","content":"SECOND"}`, tapedeck.Conflict, `tool call "c1" has a result already: event 3 of the context`},
		{"assistant_message", `{"tool_calls":[{"id":"c1","function":{"name":"Write","arguments":"{}"}}]}`, tapedeck.Conflict, `another tool call "c1"`},
		{"assistant_message", `{"tool_calls":[{"id":"c2","function":{"name":"A"}},{"id":"c2","function":{"name":"B"}}]}`, tapedeck.Invalid, `two tool calls of the assistant_message have the id "c2"`},
		{"tool_call", `{"id":"c1","name":"Write","arguments":"{}"}`, tapedeck.Conflict, `another tool call "c1"`},
	} {
		_, err := w.AppendEvent(t.Context(), i, tt.typ, json.RawMessage(tt.content), "")
		refuses(t, err, tt.kind, tt.want)
	}
	w.add(i, `tool_call {"id":"c1","name":"Read","arguments":{ "path":"a" }}`) // the same again
	if now := w.head("ses"); now != head {
		t.Errorf("the log has grown from %d to %d", head, now)
	}
	w.shows(i, user, asks, calls, result, answer)
}

// TestCollidingCallOfAnotherAgent: the agents of one thread share the ids of
// calls.
func TestCollidingCallOfAnotherAgent(t *testing.T) {
	w := newWorld(t)
	if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
		{Type: tapedeck.InstanceStarted, Instance: "ins_a", Data: json.RawMessage(`{"id":"ins_a","name":"a"}`)},
		{Type: tapedeck.InstanceStarted, Instance: "ins_b", Data: json.RawMessage(`{"id":"ins_b","name":"b"}`)},
	}}); err != nil {
		t.Fatal(err)
	}
	a, b := view.Ref{Session: "ses", ID: "ins_a"}, view.Ref{Session: "ses", ID: "ins_b"}
	w.add(a, asks)
	_, err := w.AppendEvent(t.Context(), b, "tool_call", json.RawMessage(`{"id":"c1","name":"Read","arguments":{"path":"a"}}`), "")
	refuses(t, err, tapedeck.Conflict, `another tool call "c1"`)
	_, err = w.AppendEvent(t.Context(), b, "tool_result", json.RawMessage(`{"tool_call_id":"c1","content":"x"}`), "")
	refuses(t, err, tapedeck.Invalid, `no tool call "c1"`)
	w.shows(a, asks)
	w.shows(b)
}

// TestOneOfManyResults: of many results of one call at the same time, one is
// appended.
func TestOneOfManyResults(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	w.add(i, asks)
	head := w.head("ses")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, _ = w.AppendEvent(t.Context(), i, "tool_result", json.RawMessage(`{"content":"a file"}`), "c1")
		})
	}
	all.Wait()
	if now := w.head("ses"); now != head+1 {
		t.Errorf("%d events were written", now-head)
	}
}

// TestCopiesOfOneID: a copy does not change existing events, and its results
// belong to its own calls.
func TestCopiesOfOneID(t *testing.T) {
	w := newWorld(t)
	first, second, to := w.create("ses", "a", ""), w.create("ses", "b", ""), w.create("other", "c", "")
	w.add(first, asks, calls, result)
	w.add(second, `assistant_message {"content":null,"tool_calls":[{"id":"c1","function":{"name":"Write","arguments":"{}"}}]}`, `tool_call {"id":"c1","name":"Write","arguments":{}}`, `tool_result {"tool_call_id":"c1","content":"done"}`)
	for _, from := range []view.Ref{first, second, to} { // to itself, too
		if _, err := w.CopyEvents(t.Context(), from, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	events, err := w.GetEvents(t.Context(), to, 0)
	if err != nil || len(events) != 12 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	ids := map[string]bool{}
	for n := 0; n < len(events); n += 3 {
		var call struct{ ID, Name string }
		_ = json.Unmarshal(events[n+1].Content, &call)
		var answer struct{ Content string }
		_ = json.Unmarshal(events[n+2].Content, &answer)
		if got := call.Name + " " + answer.Content; got != []string{"Read a file", "Write done"}[n/3%2] {
			t.Errorf("from %d on there is %s", n, got)
		}
		if call.ID != events[n+1].ToolCallID || events[n+1].ToolCallID != events[n+2].ToolCallID || ids[events[n+1].ToolCallID] {
			t.Errorf("call %s has the result of %s", events[n+1].ToolCallID, events[n+2].ToolCallID)
		}
		ids[events[n+1].ToolCallID] = true
	}
	w.shows(to, append([]string{asks, calls, result}, rows(events[3:])...)...)
}

func rows(events []view.ContextEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.Type+" "+string(e.Content))
	}
	return out
}
