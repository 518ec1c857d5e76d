package view_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func TestTaskFixtures(t *testing.T) {
	testFixtures(t, "tasks", func(_ *testing.T, _ viewFixture, events []tapedeck.Event) any {
		return view.Tasks(fold(events).Snapshot())
	})
}

// event returns an event in a thread and an invocation.
func event(typ, thread, invocation, data string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Thread: thread, Invocation: invocation, Data: json.RawMessage(data)}
}

func numbered(events []tapedeck.Event) []tapedeck.Event {
	for i := range events {
		events[i].Offset = int64(i)
	}
	return events
}

// TestTasksOfSubagents: a run with a parent run in another thread is left out,
// whatever the name of its thread is, also after it has settled.
func TestTasksOfSubagents(t *testing.T) {
	events := []tapedeck.Event{event(tapedeck.RunStarted, "", "i1", `{"runId":"i1"}`)}
	const subs = view.Window + 20
	for i := range subs {
		id := fmt.Sprint("s", i)
		events = append(events, event(tapedeck.RunStarted, "sidechain_x", id, `{"parentRunId":"i1"}`), event(tapedeck.RunFinished, "sidechain_x", id, `{}`))
	}
	events = append(events,
		event(tapedeck.RunFinished, "", "i1", `{}`),
		event(tapedeck.RunStarted, "", "i2", `{"parentRunId":"i1"}`), // AG-UI calls the run before in a thread the parent
		event(tapedeck.RunFinished, "", "i2", `{}`),
	)
	c := fold(numbered(events))
	for _, c := range []*view.Conversation{c, checkpoint(t, *c)} {
		var got []string
		for _, task := range view.Tasks(c.Snapshot()) {
			got = append(got, task.Invocation)
		}
		if fmt.Sprint(got) != "[i1 i2]" {
			t.Errorf("the tasks are %v", got)
		}
		if n := len(view.Tasks(c.Thread("sidechain_x"))); n != view.Window {
			t.Errorf("the thread of the sub-agent has %d loaded tasks", n)
		}
		if all, one := c.RunsSettledBefore(""), c.RunsSettledBefore("sidechain_x"); all != 0 || one != subs-view.Window {
			t.Errorf("%d and %d have settled", all, one)
		}
	}
}

// TestTaskThatIsAskedAgain: a sub-agent that a crash has stopped is asked again without a
// second message, and has the same task.
func TestTaskThatIsAskedAgain(t *testing.T) {
	begun := func(id string) tapedeck.Event {
		return event(tapedeck.RunStarted, "thread_T", id, `{"parentRunId":"i1"}`)
	}
	asked := event(tapedeck.MessageAdded, "thread_T", "s1", `{"message":{"id":"m","role":"user","content":"Weigh it"}}`)
	asked.Actor = "agent:workflow"
	c := fold(numbered([]tapedeck.Event{
		event(tapedeck.RunStarted, "", "i1", `{"runId":"i1"}`), asked, begun("s1"),
		event(tapedeck.RunError, "thread_T", "s1", `{"message":"m","code":"interrupted_by_restart"}`), begun("s2"),
	}))
	for _, task := range view.Tasks(c.Thread("thread_T")) {
		if task.Text != "Weigh it" || task.Actor != "agent:workflow" {
			t.Errorf("the task of %s is %q of %q", task.Invocation, task.Text, task.Actor)
		}
	}
}

// TestEndOfAMessageWithOnlyCalls: such a message ends where the arguments of
// its last call end.
func TestEndOfAMessageWithOnlyCalls(t *testing.T) {
	events := numbered([]tapedeck.Event{
		event(tapedeck.RunStarted, "", "i1", `{"runId":"i1"}`),
		event(tapedeck.ToolCallStart, "", "i1", `{"toolCallId":"c1","toolCallName":"Read"}`),
		event(tapedeck.ToolCallArgs, "", "i1", `{"toolCallId":"c1","delta":"{}"}`),
		event(tapedeck.ToolCallEnd, "", "i1", `{"toolCallId":"c1"}`),
		event(tapedeck.ToolCallResult, "", "i1", `{"toolCallId":"c1","messageId":"r","content":"x"}`),
		event(tapedeck.RunFinished, "", "i1", `{}`),
	})
	for n, want := range map[int]string{3: "null", 4: "3", 6: "3"} {
		c := fold(events[:n])
		for _, c := range []*view.Conversation{c, checkpoint(t, *c)} {
			s := c.Snapshot()
			end, _ := json.Marshal(view.ContextEvents(s, view.InThread(""))[0].EndOffset)
			place, _ := json.Marshal(view.Places(view.Context(s, view.InThread("")))[0].EndOffset)
			if string(end) != want || string(place) != want {
				t.Errorf("after %d events it ends at %s and %s, want %s", n, end, place, want)
			}
		}
	}
}
