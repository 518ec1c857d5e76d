package instance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// sayer is an agent that says its name.
type sayer string

func (s sayer) Run(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, typ := range []string{tapedeck.TextMessageStart, tapedeck.TextMessageContent, tapedeck.TextMessageEnd} {
			d := fmt.Sprintf(`{"messageId":"%s.m","role":"assistant","delta":"%s"}`, in.ID, s)
			if !yield(tapedeck.Event{Type: typ, Data: json.RawMessage(d)}, nil) {
				return
			}
		}
	}
}

const (
	task     = `user_message {"role":"user","content":"go"}`
	byCoder  = `assistant_message {"role":"assistant","content":"coder"}`
	byTester = `assistant_message {"role":"assistant","content":"tester"}`
)

// withAgents tests a repository whose engine has the agents bot, coder and tester.
func withAgents(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		views := projection.New(projection.Options{Store: store})
		o := engine.Options{Store: store, Views: views}
		for _, name := range []string{"bot", "coder", "tester"} {
			o.Agents = append(o.Agents, engine.Agent{Agent: tapedeck.Agent{Name: name}, Runner: sayer(name)})
		}
		e := engine.New(o)
		if _, err := e.Create(t.Context(), api.NewSession{ID: "ses"}); err != nil {
			t.Fatal(err)
		}
		test(&world{TB: t, Repository: instance.New(e, views, store), engine: e, views: views, store: store})
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// run runs a task to its end.
func (w *world) run(t api.Task) {
	w.Helper()
	t.Text = "go"
	if _, err := w.engine.Start(w.Context(), t); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// names returns the ids of the instances of a session.
func (w *world) names(session string) string {
	w.Helper()
	all, err := w.views.Instances(w.Context(), session, -1)
	if err != nil {
		w.Fatal(err)
	}
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return strings.Join(ids, " ")
}

// A run of an agent continues the context that a program keeps for that agent: the first of a
// session without naming anything, another one by its thread.
func TestRunsContinueAContext(t *testing.T) {
	withAgents(t, func(w *world) {
		first, second := w.create("ses", "coder", ""), w.create("ses", "coder", "")
		w.add(first, user, answer)
		w.add(second, user)
		w.run(api.Task{Session: "ses"})
		w.run(api.Task{Session: "ses", Thread: w.threadOf(second), Agent: "coder"})
		w.shows(first, user, answer, task, byCoder)
		w.shows(second, user, task, byCoder)
		w.add(first, user)
		w.run(api.Task{Session: "ses", Overwrite: &api.Overwrite{FromOffset: w.head("ses") - 1}})
		w.shows(first, user, answer, task, byCoder, task, byCoder)
		if got := w.names("ses"); got != first.ID+" "+second.ID {
			w.Errorf("the instances are %s", got)
		}
	})
}

// What people say to an agent is in the context of that agent, also if another one ran before.
func TestTaskIsInTheContextOfItsAgent(t *testing.T) {
	withAgents(t, func(w *world) {
		w.run(api.Task{Session: "ses", Agent: "coder"})
		w.run(api.Task{Session: "ses", Agent: "tester"})
		w.run(api.Task{Session: "ses", Agent: "coder"})
		w.shows(view.Ref{Session: "ses", ID: view.AgentInstance("ses", "coder", "")}, task, byCoder, task, byCoder)
		w.shows(view.Ref{Session: "ses", ID: view.AgentInstance("ses", "tester", "")}, task, byTester)
	})
}

// An agent keeps its instance if all of its context is reverted, or all but the first task,
// also in a copy.
func TestInstanceStays(t *testing.T) {
	withAgents(t, func(w *world) {
		w.run(api.Task{Session: "ses", Agent: "coder"})
		i := view.Ref{Session: "ses", ID: view.AgentInstance("ses", "coder", "")}
		copied, err := w.engine.Fork(w.Context(), api.Fork{Parent: "ses", Copy: true, At: new(int64(2)), Context: &view.ContextCut{}})
		if err != nil {
			w.Fatal(err)
		}
		c := view.Ref{Session: copied.ID, ID: view.AgentInstance(copied.ID, "coder", "")}
		w.shows(c, task)
		w.run(api.Task{Session: copied.ID, Agent: "coder"})
		w.shows(c, task, task, byCoder)
		if got := w.names(copied.ID); got != c.ID {
			w.Errorf("the instances are %s", got)
		}
		n, done, err := w.DeleteEventsAfter(w.Context(), i, -1)
		if err != nil || n != 2 || done.Marker == "" {
			w.Fatalf("%d, %+v, %v", n, done, err)
		}
		w.shows(i)
		if got, err := w.GetInstance(w.Context(), i); err != nil || got.Name != "coder" {
			w.Errorf("%+v, %v", got, err)
		}
		w.add(i, user)
		w.run(api.Task{Session: "ses", Agent: "coder"})
		w.shows(i, user, task, byCoder)
		if _, err := w.engine.Undo(w.Context(), api.Undo{Session: "ses", Marker: done.Marker}); err != nil {
			w.Fatal(err)
		}
		w.shows(i, task, byCoder)
	})
}

// message returns an assistant's message with calls.
func message(calls int) string {
	var list []string
	for n := range calls {
		list = append(list, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"Read","arguments":"{}"}}`, n))
	}
	return `assistant_message {"role":"assistant","content":"","tool_calls":[` + strings.Join(list, ",") + `]}`
}

// A view knows some hundred calls without a result. More are refused before they are lost; as
// many as are allowed keep each of their events.
func TestManyCalls(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	appends := func(line string) error {
		typ, content, _ := strings.Cut(line, " ")
		_, err := w.AppendEvent(t.Context(), i, typ, json.RawMessage(content), "")
		return err
	}
	refuses(t, appends(message(501)), tapedeck.TooLarge, "501 tool calls without a result")
	want := []string{message(500)}
	w.add(i, want...)
	refuses(t, appends(`tool_call {"id":"more","name":"Read","arguments":"{}"}`), tapedeck.TooLarge, "501 tool calls")
	for n := range 500 {
		call := fmt.Sprintf(`tool_call {"id":"c%d","name":"Read","arguments":"{}"}`, n)
		w.add(i, call)
		want = append(want, call)
	}
	for n := range 500 {
		result := fmt.Sprintf(`tool_result {"tool_call_id":"c%d","content":"x"}`, n)
		w.add(i, result)
		want = append(want, result)
	}
	w.add(i, `tool_call {"id":"more","name":"Read","arguments":"{}"}`)
	w.shows(i, append(want, `tool_call {"id":"more","name":"Read","arguments":"{}"}`)...)
	another := w.create("ses", "tester", "") // its messages come another way
	d := strings.NewReplacer("tool_calls", "toolCalls").Replace(strings.TrimPrefix(message(600), "assistant_message "))
	if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
		{Type: tapedeck.MessageAdded, Thread: another.ID, Instance: another.ID, Data: json.RawMessage(`{"message":{"id":"m",` + d[1:] + `}`)},
	}}); err != nil {
		t.Fatal(err)
	}
	// Only more calls are refused.
	w.add(another, user, `tool_result {"tool_call_id":"c599","content":"x"}`)
}

// A tool_call comes before its result, and keeps its text.
func TestCallsOfAMessage(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	w.add(i, message(2), `tool_call {"id":"c0","name":"Read","arguments":"{ }"}`, `tool_result {"tool_call_id":"c1","content":"x"}`)
	_, err := w.AppendEvent(t.Context(), i, "tool_call", json.RawMessage(`{"id":"c1","name":"Read","arguments":"{}"}`), "")
	refuses(t, err, tapedeck.Conflict, "has its result already")
	w.shows(i, message(2), `tool_call {"id":"c0","name":"Read","arguments":"{ }"}`, `tool_result {"tool_call_id":"c1","content":"x"}`)
}

// A cut does not take a call that is an event of its own, or that has its result.
func TestUncalledOfOthers(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	lines := []string{message(1), `tool_call {"id":"c0","name":"Read","arguments":"{}"}`, `tool_result {"tool_call_id":"c0","content":"x"}`, `tool_call {"id":"own","name":"Read","arguments":"{}"}`}
	w.add(i, lines...)
	cut := &view.ContextCut{Thread: w.threadOf(i), Uncalled: []string{"own", "c0", "unknown"}}
	if _, err := w.engine.Overwrite(t.Context(), api.Overwrite{Session: "ses", FromOffset: w.head("ses"), Thread: cut.Thread, Context: cut}); err != nil {
		t.Fatal(err)
	}
	w.shows(i, lines...)
}

// One request does not copy more than fits into the memory of a small server.
func TestLargeCopy(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	large := `user_message {"role":"user","content":"` + strings.Repeat("x", 9<<20) + `"}`
	w.add(i, large, large)
	head := w.head("ses")
	_, err := w.CopyEvents(t.Context(), i, i, nil)
	refuses(t, err, tapedeck.TooLarge, "are copied at once")
	if w.head("ses") != head {
		t.Error("a part was copied")
	}
	if n, err := w.CopyEvents(t.Context(), i, i, new(0)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
