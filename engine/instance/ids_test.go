package instance_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// The ids of events are unique across sessions, copies included. They have the order of the
// events, and stay. The answer of an append has them.
func TestEventIDs(t *testing.T) {
	w := newWorld(t)
	i, to := w.create("ses", "coder", ""), w.create("other", "coder", "")
	steps := []string{user, asks, calls, result, answer}
	var ids, all []string
	for _, step := range steps {
		typ, content, _ := strings.Cut(step, " ")
		e, err := w.AppendEvent(t.Context(), i, typ, json.RawMessage(content), "")
		if err != nil || e.Instance != i.ID || (e.ToolCallID != "") != (typ == view.ResultEvent) {
			t.Fatalf("got %+v, %v", e, err)
		}
		ids = append(ids, e.ID)
	}
	streamed := strings.Split(`RUN_STARTED {"threadId":"main","runId":"i1"}
TOOL_CALL_START {"toolCallId":"c9","toolCallName":"Read"}
TOOL_CALL_END {"toolCallId":"c9"}
RUN_FINISHED {"threadId":"main","runId":"i1"}`, "\n")
	for _, line := range streamed { // a message and its call begin with one event
		typ, data, _ := strings.Cut(line, " ")
		if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{{Type: typ, Invocation: "i1", Data: json.RawMessage(data)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.CopyEvents(t.Context(), i, to, nil); err != nil {
		t.Fatal(err)
	}
	copied, err := w.engine.Fork(t.Context(), api.Fork{Parent: "ses", Copy: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []view.Ref{i, to, {Session: copied.ID, ID: i.ID}} {
		events, err := w.GetEvents(t.Context(), of, 0)
		if err != nil || len(events) != len(steps)+2 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		var here []string
		for _, e := range events {
			here = append(here, e.ID)
		}
		if !slices.IsSorted(here) || of == i && !slices.Equal(here[:len(ids)], ids) {
			t.Errorf("the ids are %q, and were %q", here, ids)
		}
		all = append(all, here...)
	}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d of %d ids are unique: %q", n, len(all), all)
	}
}
