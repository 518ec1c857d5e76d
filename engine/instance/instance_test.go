package instance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	return &world{TB: t, Repository: instance.New(e, views), engine: e, views: views}
}

func (w *world) create(session, agent, parent string) view.Ref {
	w.Helper()
	i, err := w.CreateInstance(w.Context(), session, agent, parent)
	if err != nil {
		w.Fatal(err)
	}
	return view.Ref{Session: session, ID: i.ID}
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
	_, err = w.GetEvents(t.Context(), i, 7)
	refuses(t, err, tapedeck.Invalid, "sequence number 7 is past the end: the context has 6 events")
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
	w.add(i, `tool_call {"id":"c1","name":"Read","arguments":{"path": "a"}}`)
	w.shows(i, asks, calls)
	w.add(i, calls) // again
	w.shows(i, asks, calls)
	if _, err := w.AppendEvent(t.Context(), i, view.ResultEvent, json.RawMessage(`{"tool_call_id":"c1","content":"a file"}`), "c1"); err != nil {
		t.Fatal(err)
	}
	w.shows(i, asks, calls, result)
	w.add(i, `tool_call {"id":"c2","name":"Read","arguments":"{}"}`)
	e, err := w.AppendEvent(t.Context(), i, view.ResultEvent, json.RawMessage(`{"content":"another"}`), "c2") // the id is beside the content
	if err != nil || e.Sequence != 5 || e.ToolCallID != "c2" {
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
		{i, "user_message", `{"role":"system","content":"x"}`, "", tapedeck.Invalid, "role of a user_message is user"},
		{i, "user_message", `[]`, "", tapedeck.Invalid, "content of the user_message must be an object, and is an array"},
		{i, "user_message", `{"content":7}`, "", tapedeck.Invalid, `member "content" in the content of the user_message must be a string, and is a number`},
		{i, "user_message", `{"content":[{"type":"text","text":"x"}]}`, "", tapedeck.Invalid, "must be a string, and is an array"},
		{i, "assistant_message", `{"tool_calls":{}}`, "", tapedeck.Invalid, `member "tool_calls" in the content of the assistant_message must be an array, and is an object`},
		{i, "user_message", ``, "", tapedeck.Invalid, "the user_message has no content"},
		{i, "tool_result", `{"tool_call_id":"c9","content":"x"}`, "", tapedeck.Invalid, `no tool call "c9"`},
		{i, "tool_result", `{"tool_call_id":"c9","content":"x"}`, "c8", tapedeck.Invalid, `about call "c9" and about call "c8"`},
		{i, "tool_result", `{"content":"x"}`, "", tapedeck.Invalid, "about call"},
		{i, "tool_call", `{"id":"c1"}`, "", tapedeck.Invalid, "no id or no name"},
		{i, "assistant_message", `{"tool_calls":[{"function":{}}]}`, "", tapedeck.Invalid, "no id or no name"},
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
	_, _, err := w.DeleteEventsAfter(t.Context(), i, 2)
	refuses(t, err, tapedeck.Invalid, "assistant_message 2 and tool_call 3 are one event")
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
		{2, []string{system, user, `assistant_message {"role":"assistant","content":""}`}},
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
