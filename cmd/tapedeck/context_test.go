package main

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// Each number of a context is printed once: also those of its calls and of a system text that
// a newer one replaces. A part of a context has no numbers.
func TestContextNumbers(t *testing.T) {
	call := view.ContextToolCall{ID: "c1", Function: view.ContextFunction{Name: "Read", Arguments: "{}"}}
	place := func(n int, at int64) view.ContextPlace {
		return view.ContextPlace{Sequence: &n, Offset: &at, EndOffset: &at}
	}
	event := func(n int, at int64, typ, id string) view.ContextEvent {
		return view.ContextEvent{Sequence: n, Type: typ, ToolCallID: id, Offset: at, EndOffset: &at}
	}
	v := api.Context{
		Messages: []view.ContextMessage{
			{Role: "system", Content: "new"}, {Role: "assistant", ToolCalls: []view.ContextToolCall{call}}, {Role: "tool", Content: "a file"},
			{Role: "assistant", ToolCalls: []view.ContextToolCall{call}},
		},
		Places: []view.ContextPlace{place(3, 9), place(1, 2), place(4, 12), place(5, 13)},
		Events: []view.ContextEvent{
			event(0, 1, view.SystemMessage, ""), event(1, 2, view.AssistantMessage, ""), event(2, 3, view.CallEvent, "c1"), event(3, 9, view.SystemMessage, ""),
			event(4, 12, view.ResultEvent, "c1"), event(5, 13, view.AssistantMessage, ""), event(6, 14, view.CallEvent, "c1"),
		},
	}
	lines := func() string {
		var out strings.Builder
		if err := printContext(terminal.Pen{W: &out}, v); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	if got, want := lines(), "0 @1 system (the model does not get it) 3 @9 system new 1 @2 assistant 2 @3 call Read {} 4 @12 tool a file 5 @13 assistant 6 @14 call Read {}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v.Events, v.Earlier = nil, 7
	for n := range v.Places {
		v.Places[n].Sequence = nil
	}
	if got, want := lines(), "… 7 messages before these are left out @9 system new @2 assistant call Read {} @12 tool a file @13 assistant call Read {}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
