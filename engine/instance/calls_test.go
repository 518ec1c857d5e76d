package instance_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine/instance"
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
// call writes nothing. A tool_call that is sent again is the same one.
func TestCollidingCallsAreRefused(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	w.add(i, user, asks, calls, result, answer, asks2, `tool_call {"id":"c3","name":"Read","arguments":"{}"}`)
	head := w.head("ses")
	for _, tt := range []struct {
		typ, content string
		kind         tapedeck.Kind
		want         string
	}{
		{"tool_result", `{"tool_call_id":"c1","content":"SECOND"}`, tapedeck.Conflict, `tool call "c1" has a result already: event 3 of the context`},
		{"assistant_message", `{"tool_calls":[{"id":"c2","function":{"name":"Read","arguments":"{}"}}]}`, tapedeck.Conflict, `another tool call "c2", which has no result yet`},
		{"assistant_message", `{"tool_calls":[{"id":"c3","function":{"name":"Read","arguments":"{}"}}]}`, tapedeck.Conflict, `another tool call "c3", which has no result yet`},
		{"assistant_message", `{"tool_calls":[{"id":"c4","function":{"name":"A"}},{"id":"c4","function":{"name":"B"}}]}`, tapedeck.Invalid, `two tool calls of the assistant_message have the id "c4"`},
		{"tool_call", `{"id":"c2","name":"Write","arguments":"{}"}`, tapedeck.Conflict, `another tool call "c2", which has no result yet`},
		{"tool_call", `{"id":"c3","name":"Read","arguments":"{\"path\":\"b\"}"}`, tapedeck.Conflict, `another tool call "c3", which has no result yet`},
	} {
		_, err := w.AppendEvent(t.Context(), i, tt.typ, json.RawMessage(tt.content), "")
		refuses(t, err, tt.kind, tt.want)
	}
	for _, r := range []*instance.Repository{w.Repository, instance.New(w.engine, w.views, w.store)} { // a new process knows the same
		e, err := r.AppendEvent(t.Context(), i, "tool_call", json.RawMessage(`{"id":"c3","name":"Read","arguments":{ }}`), "")
		if err != nil || e.Sequence != 6 {
			t.Errorf("the same call answers %+v, %v", e, err)
		}
	}
	if now := w.head("ses"); now != head {
		t.Errorf("the log has grown from %d to %d", head, now)
	}
}

const asks2 = `assistant_message {"role":"assistant","content":"","tool_calls":[{"id":"c2","type":"function","function":{"name":"Read","arguments":"{}"}}]}`

// turns are the turns of a model that numbers its calls from the start in each: with other arguments,
// with the same, without a message that has the call, and with arguments that were mended.
var turns = []string{
	user, asks, calls, result, answer,
	user, asks, `tool_call {"id":"c1","name":"Read","arguments":{"path":"a","mended":true}}`, `tool_result {"tool_call_id":"c1","content":"two"}`,
	`assistant_message {"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"Write","arguments":"{"}}]}`,
	`tool_call {"id":"c1","name":"Write","arguments":"{}"}`, `tool_result {"tool_call_id":"c1","content":"three"}`,
	`tool_call {"id":"c1","name":"Write","arguments":"{}"}`, `tool_result {"tool_call_id":"c1","content":"four"}`, answer,
	user, calls, `tool_result {"tool_call_id":"c1","content":"five"}`,
}

// TestCallIDsAreUsedAgain: the id of a call that has its result is free for the next one.
// Everybody reads the ids that were sent: the context, each copy and each cut of it, and the
// model. In the log they differ.
func TestCallIDsAreUsedAgain(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	for n, line := range turns {
		if n%4 == 3 {
			w.Repository = instance.New(w.engine, w.views, w.store)
		}
		w.add(i, line)
	}
	w.shows(i, turns...)
	to := w.create("ses", "reader", "")
	for range 2 { // after the first, each id is taken
		if _, err := w.CopyEvents(t.Context(), i, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.shows(to, append(slices.Clone(turns), turns...)...)
	s, err := w.views.Snapshot(t.Context(), "ses", view.Query{Thread: w.threadOf(i)})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, k := range s.Calls {
		ids[k.ID] = true
	}
	answers := ""
	for _, m := range view.Context(s, view.InThread(w.threadOf(i))) {
		for _, k := range m.ToolCalls {
			answers += k.ID + " "
		}
		if m.ToolCallID != "" {
			answers += m.ToolCallID + "=" + m.Content + "\n"
		}
	}
	want := "c1 c1=a file\nc1 c1=two\nc1 c1=The arguments were not a JSON object: {\nthree\nc1 c1=four\nc1 c1=five\n"
	if len(ids) != 5 || answers != want {
		t.Errorf("%d ids in the log; the model gets\n%s", len(ids), answers)
	}
}

// TestUsedAgainAndCut reverts a context with such ids to each of its events, and goes on
// there.
func TestUsedAgainAndCut(t *testing.T) {
	for n := range turns {
		w := newWorld(t)
		i := w.create("ses", "coder", "")
		w.add(i, turns...)
		if _, _, err := w.DeleteEventsAfter(t.Context(), i, n); err != nil {
			t.Fatal(err)
		}
		w.shows(i, turns[:n+1]...)
		w.add(i, turns[n+1:]...)
		w.shows(i, turns...)
	}
}

// TestCallsOfTwoAgents: the agents of one thread have calls of their own.
func TestCallsOfTwoAgents(t *testing.T) {
	w := newWorld(t)
	if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
		{Type: tapedeck.InstanceStarted, Instance: "ins_a", Data: json.RawMessage(`{"id":"ins_a","name":"a"}`)},
		{Type: tapedeck.InstanceStarted, Instance: "ins_b", Data: json.RawMessage(`{"id":"ins_b","name":"b"}`)},
	}}); err != nil {
		t.Fatal(err)
	}
	a, b := view.Ref{Session: "ses", ID: "ins_a"}, view.Ref{Session: "ses", ID: "ins_b"}
	w.add(a, asks)
	_, err := w.AppendEvent(t.Context(), b, "tool_result", json.RawMessage(`{"tool_call_id":"c1","content":"x"}`), "")
	refuses(t, err, tapedeck.Invalid, `no tool call "c1"`)
	w.add(b, calls)
	w.add(a, `tool_result {"tool_call_id":"c1","content":"of a"}`)
	w.add(b, `tool_result {"tool_call_id":"c1","content":"of b"}`)
	w.shows(a, asks, `tool_result {"tool_call_id":"c1","content":"of a"}`)
	w.shows(b, calls, `tool_result {"tool_call_id":"c1","content":"of b"}`)
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
	for n := 0; n < len(events); n += 3 {
		var call struct{ ID, Name string }
		_ = json.Unmarshal(events[n+1].Content, &call)
		var answer struct{ Content string }
		_ = json.Unmarshal(events[n+2].Content, &answer)
		if got := call.Name + " " + answer.Content; got != []string{"Read a file", "Write done"}[n/3%2] {
			t.Errorf("from %d on there is %s", n, got)
		}
		if call.ID != events[n+1].CallID() || call.ID != events[n+2].ToolCallID {
			t.Errorf("call %s has the result of %s", call.ID, events[n+2].ToolCallID)
		}
	}
	w.shows(to, append([]string{asks, calls, result}, rows(events[3:])...)...)
}

func rows(events []view.ContextEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.Type+" "+string(e.Content))
	}
	return out
}
