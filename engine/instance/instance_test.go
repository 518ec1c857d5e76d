package instance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A world is a repository over a real engine.
type world struct {
	testing.TB
	*instance.Repository
	engine *engine.Engine
	views  *projection.Projections
	store  tapedeck.Store
}

type nobody struct{}

func (nobody) Run(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(func(tapedeck.Event, error) bool) {}
}

func newWorld(t testing.TB) *world {
	store := memory.New(memory.Options{})
	views := projection.New(projection.Options{Store: store})
	e := engine.New(engine.Options{Store: store, Views: views, Agents: []engine.Agent{{Agent: tapedeck.Agent{Name: "bot"}, Runner: nobody{}}}})
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	for _, id := range []string{"ses", "other"} {
		if _, err := e.Create(t.Context(), api.NewSession{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	return &world{TB: t, Repository: instance.New(e, views, store), engine: e, views: views, store: store}
}

func (w *world) GetEvents(ctx context.Context, of view.Ref, from int) ([]view.ContextEvent, error) {
	events, _, err := w.Repository.GetEvents(ctx, of, from)
	return events, err
}

func (w *world) create(session, agent, parent string) view.Ref {
	w.Helper()
	i, err := w.CreateInstance(w.Context(), session, agent, parent)
	if err != nil {
		w.Fatal(err)
	}
	return view.Ref{Session: session, ID: i.ID}
}

// threadOf returns the thread of an instance.
func (w *world) threadOf(of view.Ref) string {
	w.Helper()
	i, err := w.GetInstance(w.Context(), of)
	if err != nil {
		w.Fatal(err)
	}
	return i.Thread
}

// add appends events, each written as its type, a space, and its content.
func (w *world) add(id view.Ref, lines ...string) {
	w.Helper()
	for _, line := range lines {
		typ, content, _ := strings.Cut(line, " ")
		e, err := w.AppendEvent(w.Context(), id, typ, json.RawMessage(content), "")
		if err != nil {
			w.Fatalf("%s: %v", line, err)
		}
		if e.Type != typ {
			w.Fatalf("%s became %+v", line, e)
		}
	}
}

// shows compares the context of an instance with events in the same form.
func (w *world) shows(id view.Ref, want ...string) {
	w.Helper()
	events, err := w.GetEvents(w.Context(), id, 0)
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for i, e := range events {
		if e.Sequence != i {
			w.Errorf("number %d is %d", i, e.Sequence)
		}
		got = append(got, e.Type+" "+string(e.Content))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	system = `system_message {"role":"system","content":"Be brief."}`
	user   = `user_message {"role":"user","content":"Look."}`
	asks   = `assistant_message {"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]}`
	calls  = `tool_call {"id":"c1","name":"Read","arguments":"{\"path\":\"a\"}"}`
	result = `tool_result {"tool_call_id":"c1","content":"a file"}`
	answer = `assistant_message {"role":"assistant","content":"It is a file."}`
)

func TestContext(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	w.add(i, system, user, asks, calls, result, answer)
	w.shows(i, system, user, asks, calls, result, answer)
	rest, err := w.GetEvents(t.Context(), i, 4)
	if err != nil || len(rest) != 2 || rest[0].Sequence != 4 || rest[0].ToolCallID != "c1" || rest[0].CreatedAt.IsZero() {
		t.Errorf("from 4 on there are %+v, %v", rest, err)
	}
	if rest, err = w.GetEvents(t.Context(), i, 6); err != nil || len(rest) != 0 {
		t.Errorf("from 6 on there are %+v, %v", rest, err)
	}
	if rest, err = w.GetEvents(t.Context(), i, 7); err != nil || len(rest) != 0 {
		t.Errorf("from 7 on there are %+v, %v", rest, err)
	}
}

func TestInstances(t *testing.T) {
	w := newWorld(t)
	lead := w.create("ses", "lead", "")
	search := w.create("ses", "searcher", lead.ID)
	if got, err := w.GetInstance(t.Context(), search); err != nil || got.ID != search.ID || got.Name != "searcher" || got.Parent != lead.ID || got.StartedAt.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	w.add(lead, user)
	w.add(search, system)
	w.shows(lead, user)
	w.shows(search, system)
}

// The agent of a thread has a context, too, although it was not created here.
func TestContextOfARun(t *testing.T) {
	w := newWorld(t)
	if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
		{Type: tapedeck.RunStarted, Invocation: "i1", Data: json.RawMessage(`{"threadId":"main","runId":"i1"}`)},
		{Type: tapedeck.TextMessageStart, Invocation: "i1", Data: json.RawMessage(`{"messageId":"m","role":"assistant"}`)},
		{Type: tapedeck.TextMessageContent, Invocation: "i1", Data: json.RawMessage(`{"messageId":"m","delta":"Hello"}`)},
		{Type: tapedeck.TextMessageEnd, Invocation: "i1", Data: json.RawMessage(`{"messageId":"m"}`)},
		{Type: tapedeck.RunFinished, Invocation: "i1", Data: json.RawMessage(`{"threadId":"main","runId":"i1"}`)},
	}}); err != nil {
		t.Fatal(err)
	}
	id := view.Ref{Session: "ses", ID: view.InstanceID("ses", "main")}
	w.add(id, user)
	w.shows(id, `assistant_message {"role":"assistant","content":"Hello"}`, user)
}

func TestAppendForms(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	asked := `tool_call {"id":"c1","name":"Read","arguments":{"path":"a"}}`
	w.add(i, asked)
	w.shows(i, asked)
	w.add(i, calls) // again
	w.shows(i, asked)
	if _, err := w.AppendEvent(t.Context(), i, view.ResultEvent, json.RawMessage(`{"tool_call_id":"c1","content":"a file"}`), "c1"); err != nil {
		t.Fatal(err)
	}
	w.shows(i, asked, result)
	w.add(i, `tool_call {"id":"c2","name":"Read","arguments":"{}"}`)
	e, err := w.AppendEvent(t.Context(), i, view.ResultEvent, json.RawMessage(`{"content":"another"}`), "c2") // the id is beside the content
	if err != nil || e.Sequence != 3 || e.ToolCallID != "c2" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestAppendRefusals(t *testing.T) {
	w := newWorld(t)
	i := w.create("ses", "coder", "")
	for _, tt := range []struct {
		id                 view.Ref
		typ, content, call string
		kind               tapedeck.Kind
		want               string
	}{
		{i, "thought", `{}`, "", tapedeck.Invalid, `no event type "thought"`},
		{i, "user_message", `{"role":"system","content":"x"}`, "", tapedeck.Invalid, `the role of the user_message must be user, and is "system"`},
		{i, "user_message", `[]`, "", tapedeck.Invalid, "content of the user_message must be an object, and is an array"},
		{i, "user_message", `{"content":7}`, "", tapedeck.Invalid, `member "content" in the content of the user_message must be a string, and is a number`},
		{i, "user_message", `{"content":[{"type":"text","text":"x"}]}`, "", tapedeck.Invalid, "must be a string, and is an array"},
		{i, "assistant_message", `{"tool_calls":{}}`, "", tapedeck.Invalid, `member "tool_calls" in the content of the assistant_message must be an array, and is an object`},
		{i, "user_message", ``, "", tapedeck.Invalid, "the user_message has no content"},
		{i, "tool_result", `{"tool_call_id":"c9","content":"x"}`, "", tapedeck.Invalid, `no tool call "c9"`},
		{i, "tool_result", `{"tool_call_id":"c9","content":"x"}`, "c8", tapedeck.Invalid, `the content of the tool_result is about call "c9", and its tool_call_id is "c8"`},
		{i, "tool_result", `{"content":"x"}`, "", tapedeck.Invalid, "the tool_result has no tool_call_id"},
		{i, "tool_call", `{"id":"c1"}`, "", tapedeck.Invalid, "the tool_call has no name"},
		{i, "tool_call", `{"id":null,"name":"Read"}`, "", tapedeck.Invalid, "the tool_call has no id"},
		{i, "tool_call", `{"id":"","name":"Read"}`, "c8", tapedeck.Invalid, "the tool_call has no id"},
		{i, "tool_call", `{"id":"c1","name":"Read"}`, "c8", tapedeck.Invalid, `the content of the tool_call is about call "c1", and its tool_call_id is "c8"`},
		{i, "assistant_message", `{"tool_calls":[{"function":{}}]}`, "", tapedeck.Invalid, "call 1 of the assistant_message has no id"},
		{i, "assistant_message", `{"tool_calls":[{"id":"c1","name":"Read"},{"id":"c2","function":{}}]}`, "", tapedeck.Invalid, "call 2 of the assistant_message has no name"},
		{view.Ref{Session: "ses"}, "user_message", `{}`, "", tapedeck.Invalid, "the instance"},
		{view.Ref{Session: "../x", ID: "y"}, "user_message", `{}`, "", tapedeck.Invalid, "the session"},
		{view.Ref{Session: "ses", ID: "ins_none"}, "user_message", `{}`, "", tapedeck.NotFound, "no instance ins_none"},
		{view.Ref{Session: "none", ID: "ins_none"}, "user_message", `{}`, "", tapedeck.NotFound, "no session"},
	} {
		_, err := w.AppendEvent(t.Context(), tt.id, tt.typ, json.RawMessage(tt.content), tt.call)
		refuses(t, err, tt.kind, tt.want)
	}
	w.shows(i)
	_, err := w.CreateInstance(t.Context(), "other", "x", i.ID)
	refuses(t, err, tapedeck.NotFound, "no instance "+i.ID+" in session other")
	_, err = w.CreateInstance(t.Context(), "none", "x", "")
	refuses(t, err, tapedeck.NotFound, "no session")
	_, err = w.CreateInstance(t.Context(), "ses", "a\nb", "")
	refuses(t, err, tapedeck.Invalid, "the agent's name")
}

func refuses(t testing.TB, err error, kind tapedeck.Kind, want string) {
	t.Helper()
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message, want) {
		t.Errorf("got %v (%s), want %s: %s", err, tapedeck.KindOf(err), kind, want)
	}
}

func TestDeleteEventsAfter(t *testing.T) {
	w := newWorld(t)
	i, other := w.create("ses", "coder", ""), w.create("ses", "tester", "")
	w.add(i, system, user, asks, calls)
	w.add(other, user)
	w.add(i, result, answer)
	if n, _, err := w.DeleteEventsAfter(t.Context(), i, 9); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, _, err := w.DeleteEventsAfter(t.Context(), i, 3); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	w.shows(i, system, user, asks, calls)
	w.add(i, result)
	w.shows(i, system, user, asks, calls, result)
	w.shows(other, user)

	if _, err := w.engine.Undo(t.Context(), api.Undo{Session: "ses"}); err != nil {
		t.Fatal(err)
	}
	w.shows(i, system, user, asks, calls, result, answer)
	if n, _, err := w.DeleteEventsAfter(t.Context(), i, -1); n != 6 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	w.shows(i)
	w.shows(other, user)
}

func TestCopyEvents(t *testing.T) {
	w := newWorld(t)
	from := w.create("ses", "coder", "")
	w.add(from, system, user, asks, calls, result, answer)
	for _, tt := range []struct {
		upTo int
		want []string
	}{
		{-1, nil},
		{1, []string{system, user}},
		{2, []string{system, user, asks}},
		{3, []string{system, user, asks, calls}},
		{99, []string{system, user, asks, calls, result, answer}},
	} {
		t.Run(fmt.Sprint(tt.upTo), func(t *testing.T) {
			to := w.create("other", "coder", "")
			if n, err := w.CopyEvents(t.Context(), from, to, &tt.upTo); n != len(tt.want) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			w.shows(to, tt.want...)
		})
	}
	to := w.create("other", "coder", "")
	if n, err := w.CopyEvents(t.Context(), from, to, nil); n != 6 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	w.shows(to, system, user, asks, calls, result, answer)
	w.shows(from, system, user, asks, calls, result, answer)
}

// What is appended stays as it was given, one event for each append, also with members that
// a message does not have.
func TestContentIsKept(t *testing.T) {
	w := newWorld(t)
	i, to := w.create("ses", "coder", ""), w.create("other", "coder", "")
	steps := []string{
		`user_message {"role":"user","content":"hi","name":"ada"}`,
		`assistant_message {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","index":0,"function":{"name":"Read","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"Read","arguments":{}}}]}`,
		`tool_call {"id":"c2","name":"Read","arguments":{}}`,
		`tool_call {"id":"c1","name":"Read","arguments":"{}","at":1.50}`,
		`tool_result {"tool_call_id":"c1","content":null,"is_error":false}`,
		`tool_result {"tool_call_id":"c2","content":""}`,
		`tool_call {"id":"c3","name":"Read","arguments":{}}`,
		`tool_result {"tool_call_id":"c3","content":{"rows":[1,2.50],"next":null}}`,
		`tool_call {"id":"c4","name":"Read","arguments":{}}`,
		`tool_result {"tool_call_id":"c4","content":[{"type":"text","text":"r"}]}`,
		`assistant_message {"role":"assistant","content":""}`,
	}
	for n := range steps {
		w.add(i, steps[n])
		w.shows(i, steps[:n+1]...)
	}
	w.add(i, `user_message {"name":"ada"}`)
	w.shows(i, append(slices.Clone(steps), `user_message {"name":"ada","role":"user"}`)...)
	for n := len(steps) - 1; n >= -1; n-- {
		if _, _, err := w.DeleteEventsAfter(t.Context(), i, n); err != nil {
			t.Fatal(err)
		}
		w.shows(i, steps[:n+1]...)
	}
	w.add(i, steps...)
	for range 2 {
		if _, err := w.CopyEvents(t.Context(), i, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.shows(to, append(slices.Clone(steps), steps...)...)
}

// A message and its calls are divided at each number, also if the log has them together, as
// of an agent that was run.
func TestDeletesInsideAMessage(t *testing.T) {
	for n := range 4 {
		w := newWorld(t)
		ev := func(typ, data string) tapedeck.Event {
			return tapedeck.Event{Type: typ, Invocation: "i1", Data: json.RawMessage(data)}
		}
		if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
			ev(tapedeck.RunStarted, `{"threadId":"main","runId":"i1"}`),
			ev(tapedeck.ToolCallStart, `{"toolCallId":"c1","toolCallName":"Read"}`), ev(tapedeck.ToolCallArgs, `{"toolCallId":"c1","delta":"{\"path\":\"a\"}"}`), ev(tapedeck.ToolCallEnd, `{"toolCallId":"c1"}`),
			ev(tapedeck.ToolCallStart, `{"toolCallId":"c2","toolCallName":"Read"}`), ev(tapedeck.ToolCallEnd, `{"toolCallId":"c2"}`),
			ev(tapedeck.ToolCallResult, `{"toolCallId":"c1","messageId":"r1","content":"a file"}`),
			ev(tapedeck.RunFinished, `{"threadId":"main","runId":"i1"}`),
		}}); err != nil {
			t.Fatal(err)
		}
		id := view.Ref{Session: "ses", ID: view.InstanceID("ses", "main")}
		all, err := w.GetEvents(t.Context(), id, 0)
		if err != nil || len(all) != 4 {
			t.Fatalf("%d events, %v", len(all), err)
		}
		if deleted, _, err := w.DeleteEventsAfter(t.Context(), id, n); err != nil || deleted != 3-n {
			t.Errorf("after %d: %d, %v", n, deleted, err)
		}
		w.shows(id, rows(all[:n+1])...)
		if n == 0 {
			w.add(id, `tool_call {"id":"c2","name":"Read","arguments":""}`, calls, result) // in another order
			w.shows(id, rows(all[:1])[0], `tool_call {"id":"c2","name":"Read","arguments":""}`, calls, result)
			if _, err := w.engine.Undo(t.Context(), api.Undo{Session: "ses"}); err != nil {
				t.Fatal(err)
			}
			w.shows(id, rows(all)...)
		}
	}
}

// Writers of two instances, and others, do not disturb what is known of a context.
func TestKnownContext(t *testing.T) {
	w := newWorld(t)
	i, other := w.create("ses", "coder", ""), w.create("ses", "tester", "")
	plain := func(of view.Ref, text string) {
		t.Helper()
		thread := w.threadOf(of)
		if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{
			{Type: tapedeck.MessageAdded, Thread: thread, Instance: of.ID, Data: json.RawMessage(`{"message":{"id":"` + text + `","role":"user","content":"` + text + `"}}`)},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) string { return `user_message {"role":"user","content":"` + text + `"}` }
	w.add(i, said("a"))
	w.add(other, said("b"))
	plain(i, "c")
	plain(other, "d")
	e, err := w.AppendEvent(t.Context(), i, "user_message", json.RawMessage(`{"content":"e"}`), "")
	if err != nil || e.Sequence != 2 {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, _, err := w.DeleteEventsAfter(t.Context(), i, 0); err != nil {
		t.Fatal(err)
	}
	w.add(i, said("f"))
	w.shows(i, said("a"), said("f"))
	w.shows(other, said("b"), said("d"))
	if err := w.engine.Delete(t.Context(), "ses"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AppendEvent(t.Context(), i, "user_message", json.RawMessage(`{"content":"g"}`), ""); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("got %v", err)
	}
}

// counted counts the contexts that are read.
type counted struct {
	*projection.Projections
	read int
}

func (c *counted) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	c.read++
	return c.Projections.Snapshot(ctx, session, q)
}

// TestAppendsReadNoContext: an append costs the same at any length, also while others write to
// the session. The context is read once.
func TestAppendsReadNoContext(t *testing.T) {
	w := newWorld(t)
	views := &counted{Projections: w.views}
	w.Repository = instance.New(w.engine, views, w.store)
	i, other := w.create("ses", "coder", ""), w.create("ses", "tester", "")
	for range 50 {
		w.add(i, user)
		w.add(other, user)
		if _, err := w.engine.Append(t.Context(), tapedeck.Append{Session: "ses", Events: []tapedeck.Event{{Type: "acme.note"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if views.read != 2 {
		t.Errorf("two contexts are read %d times for 100 appends", views.read)
	}
	w.shows(i, slices.Repeat([]string{user}, 50)...)
}

// An instance is found by its id alone.
func TestFindInstance(t *testing.T) {
	w := newWorld(t)
	i := w.create("other", "coder", "")
	again := instance.New(w.engine, w.views, w.store) // a new process
	for _, r := range []*instance.Repository{w.Repository, again, again} {
		got, session, err := r.FindInstance(t.Context(), i.ID)
		if err != nil || got.ID != i.ID || session != "other" {
			t.Errorf("got %+v of %s, %v", got, session, err)
		}
	}
	for _, id := range []string{"ins_none", "9b2f1c9e-0000-4000-8000-000000000000", view.NewInstanceID("other")} {
		_, _, err := again.FindInstance(t.Context(), id)
		refuses(t, err, tapedeck.NotFound, "no instance "+id)
	}
	f, err := w.engine.Fork(t.Context(), api.Fork{Parent: "other", Copy: true})
	if err != nil {
		t.Fatal(err)
	}
	copied, err := w.views.Instances(t.Context(), f.ID, -1)
	if err != nil || len(copied) != 1 {
		t.Fatalf("%+v, %v", copied, err)
	}
	if _, session, err := again.FindInstance(t.Context(), copied[0].ID); err != nil || session != f.ID {
		t.Errorf("the copy is in %s, %v", session, err)
	}
	if err := w.engine.Delete(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	_, _, err = again.FindInstance(t.Context(), i.ID)
	refuses(t, err, tapedeck.NotFound, "no instance "+i.ID)
}
