package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/agui"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

func TestRunner(t *testing.T) {
	task := func(s string) *tapedeck.Invocation { return &tapedeck.Invocation{Task: s} }
	for _, talk := range []string{"talk", "chunks"} {
		t.Run(talk, func(t *testing.T) {
			runnertest.Run(t, func(testing.TB) runnertest.Harness {
				u := newUpstream()
				return runnertest.Harness{
					AnyConfig: true,
					Runner:    u, Talk: *task(talk), Text: "One two three", Endless: *task("endless"), Fail: task("fail"), Bubble: true,
					Abilities: runnertest.Abilities{
						Tools: task("tool"), Plan: task("plan"), Usage: task("talk"), Subagent: task("subagent"), Ask: task("ask"), Did: u.hasDone, Resume: task("again"),
					},
				}
			})
		})
	}
}

// The agent gets the whole conversation with each task, in the same thread of its own.
func TestConversation(t *testing.T) {
	u, l := newUpstream(), &tape{}
	if text, _ := l.next(t, u, tapedeck.Invocation{Task: "talk"}, nil); text != "One two three" {
		t.Fatalf("got %q", text)
	}
	l.next(t, u, tapedeck.Invocation{Task: "tool"}, nil)
	l.next(t, u, tapedeck.Invocation{Task: "bye"}, nil)
	first, last := u.input(0), u.input(2)
	if first.ThreadID == "" || last.ThreadID != first.ThreadID || last.RunID != "inv_3" {
		t.Errorf("the threads are %q and %q, the run is %q", first.ThreadID, last.ThreadID, last.RunID)
	}
	want := `user=talk | assistant=One two three | user=tool | assistant= calls Read{"command":"rm -r /tmp/x"} | tool=hello | assistant=done | user=bye`
	if got := outlineOf(last); got != want {
		t.Errorf("the agent got %s\nwant %s", got, want)
	}
	if last.Messages[0].ID != "u1" || last.Messages[1].ID != "inv_1-1" {
		t.Errorf("the ids are %q and %q", last.Messages[0].ID, last.Messages[1].ID)
	}
	raw, _ := json.Marshal(last)
	if strings.Contains(string(raw), "metadata") || last.ProtocolVersion != "1.0" {
		t.Errorf("the input is %s", raw)
	}
}

// After a rewind and in a fork there is no link: the agent gets the active messages in
// a new thread.
func TestRewound(t *testing.T) {
	u, l := newUpstream(), &tape{}
	l.next(t, u, tapedeck.Invocation{Task: "one"}, nil)
	kept := *l
	l.next(t, u, tapedeck.Invocation{Task: "two"}, nil)
	in := tapedeck.Invocation{Task: "three", History: kept.history}
	if _, _, err := run(t, u, in); err != nil {
		t.Fatal(err)
	}
	if got := outlineOf(u.input(2)); got != "user=one | assistant=You said one | user=three" || u.input(2).ThreadID == u.input(0).ThreadID {
		t.Errorf("the agent got %s in the thread %q, after %q", got, u.input(2).ThreadID, u.input(0).ThreadID)
	}
}

// After a run that was stopped, the agent gets what people have seen of it, in a new
// thread: its own may have more or less. A call without an answer has one that says so.
func TestStopped(t *testing.T) {
	u, l := newUpstream(), &tape{}
	l.next(t, u, tapedeck.Invocation{Task: "one"}, nil)
	l.next(t, u, tapedeck.Invocation{Task: "fail"}, payload.RunError{Message: "x"})
	half := []payload.Payload{
		payload.TextMessageStart{MessageID: "m"}, payload.TextMessageContent{MessageID: "m", Delta: "half a"}, payload.TextMessageEnd{MessageID: "m"},
		payload.ToolCallStart{ToolCallID: "k", ToolCallName: "Read"}, payload.ToolCallArgs{ToolCallID: "k", Delta: `{"a`}, payload.ToolCallEnd{ToolCallID: "k"},
	}
	end := len(l.events) - 1
	failed := l.events[end]
	l.events = l.events[:end]
	for _, p := range half {
		e := payload.NewEvent(p)
		e.Invocation, e.Channel = "inv_2", tapedeck.ChannelOf(e.Type)
		l.events = append(l.events, e)
	}
	l.events = append(l.events, failed)
	for i := range l.events {
		l.events[i].Offset = int64(i)
	}
	l.next(t, u, tapedeck.Invocation{Task: "CONTEXT\n\ngo on", Context: "CONTEXT"}, nil)
	last := u.input(2)
	want := "user=one | assistant=You said one | user=fail | assistant=half a | assistant= calls Read{} | " +
		"tool=The run stopped before the arguments of this call were complete. | user=CONTEXT\n\ngo on"
	if got := outlineOf(last); got != want {
		t.Errorf("the agent got %q\nwant %q", got, want)
	}
	if last.ThreadID == u.input(0).ThreadID {
		t.Error("the thread is the same")
	}
}

// What a front end sends beside its messages reaches the agent: tools, context, state
// and properties. After the answer of its tool the user has said nothing.
func TestFrontEnd(t *testing.T) {
	u, l := newUpstream(), &tape{}
	in := `{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"ask"}],"context":[{"description":"d","value":"v"}],"state":{"n":1},"forwardedProps":{"p":true}}`
	l.next(t, u, tapedeck.Invocation{Task: "hi", Input: json.RawMessage(in)}, nil)
	got := u.input(0)
	if s := string(got.Tools) + string(got.Context) + string(got.State) + string(got.ForwardedProps); s != `[{"name":"ask"}][{"description":"d","value":"v"}]{"n":1}{"p":true}` {
		t.Errorf("the agent got %s", s)
	}
	call := payload.Message{ID: "a", Role: payload.RoleAssistant, ToolCalls: []payload.ToolCall{{ID: "k", Type: "function", Function: payload.FunctionCall{Name: "ask", Arguments: "{}"}}}}
	answer := payload.NewMessage("b", payload.RoleTool, "blue")
	answer.ToolCallID = "k"
	state := payload.StateSnapshot{Snapshot: json.RawMessage(`{"n":2}`)}
	for _, p := range []payload.Payload{payload.MessageAdded{Message: call}, payload.MessageAdded{Message: answer}, state} {
		e := payload.NewEvent(p)
		e.Offset, e.Channel = int64(len(l.events)), tapedeck.ChannelOf(e.Type)
		l.events = append(l.events, e)
	}
	if _, _, err := run(t, u, tapedeck.Invocation{Task: "Continue where you left off.", History: l.history}); err != nil {
		t.Fatal(err)
	}
	if got := outlineOf(u.input(1)); got != "user=hi | assistant=You said hi | assistant= calls ask{} | tool=blue" || string(u.input(1).State) != `{"n":2}` {
		t.Errorf("the agent got %s with the state %s", got, u.input(1).State)
	}
	config := tapedeck.Invocation{Task: "hi", Config: json.RawMessage(`{"model":"small"}`)}
	if _, _, err := run(t, u, config); err != nil || string(u.input(2).ForwardedProps) != `{"model":"small"}` {
		t.Errorf("the agent got %s, %v", u.input(2).ForwardedProps, err)
	}
}

// Attachments of the user reach the agent, with the context in front of them.
func TestAttachments(t *testing.T) {
	u := newUpstream()
	message := json.RawMessage(`{"id":"u","role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"url","value":"http://x/y.png"}}]}`)
	if _, _, err := run(t, u, tapedeck.Invocation{Task: "C\n\nhi", Context: "C", Message: message}); err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"text","text":"C\n\n"},{"type":"text","text":"hi"},{"type":"image","source":{"type":"url","value":"http://x/y.png"}}]`
	if got := string(u.input(0).Messages[0].Content); got != want {
		t.Errorf("the agent got %s", got)
	}
}

// A cancel closes the request.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range u.Run(ctx, tapedeck.Invocation{ID: "inv_1", Session: "s", Thread: tapedeck.MainThread, Task: "endless"}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == tapedeck.TextMessageContent {
				cancel()
			}
		}
		synctest.Wait() // the bubble finds a handler that is still running
	})
}

func TestAvailable(t *testing.T) {
	if err := agui.New(agui.Options{}).Available(); !strings.Contains(fmt.Sprint(err), "has no URL") {
		t.Errorf("got %v", err)
	}
}
