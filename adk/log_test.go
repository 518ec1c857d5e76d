package adk_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
)

// A desk is a deck with one session and two copies of it.
type desk struct {
	t       *testing.T
	deck    *deck.Deck
	service *adk.Service
	a, b    session.Session
}

func newDesk(t *testing.T, d *deck.Deck) *desk {
	t.Helper()
	k := &desk{t: t, deck: d, service: serviceOn(t, d)}
	made, err := k.service.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	k.a, k.b = made.Session, k.get()
	return k
}

func (k *desk) get() session.Session {
	k.t.Helper()
	done, err := k.service.Get(k.t.Context(), &session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		k.t.Fatal(err)
	}
	return done.Session
}

func (k *desk) append(s session.Session, e *session.Event) error {
	return k.service.AppendEvent(k.t.Context(), s, e)
}

func (k *desk) must(s session.Session, e *session.Event) {
	k.t.Helper()
	if err := k.append(s, e); err != nil {
		k.t.Fatal(err)
	}
}

func (k *desk) log() *deck.Session { return k.deck.Session(adk.LogID("app", "ada", "s1")) }

func text(of string) *genai.Part { return &genai.Part{Text: of} }

// TestStale: a copy that lacks an event, a rewind or an undo is refused. One that lacks
// only what ADK does not see continues.
func TestStale(t *testing.T) {
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("1")))
	if err := k.append(k.b, at(2, "user", text("2"))); tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "has changed since it was read") {
		t.Errorf("the other copy: %v", err)
	}
	if n := k.b.Events().Len(); n != 0 {
		t.Errorf("the refused event is one of %d in the copy", n)
	}
	for name, do := range map[string]func() error{
		"a bookmark": func() error {
			_, err := k.log().Append(t.Context(), payload.NewEvent(payload.BookmarkAdded{Offset: 1}))
			return err
		},
		"a new title": func() error { _, err := k.log().Rename(t.Context(), api.Rename{Title: new("t")}); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if err := k.append(k.a, at(3, "bot", text("3"))); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	if _, err := k.log().Rewind(t.Context(), api.Rewind{BeforeInvocation: "inv1"}); err != nil {
		t.Fatal(err)
	}
	if err := k.append(k.a, at(4, "bot", text("4"))); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("after a rewind: %v", err)
	}
	again := k.get()
	check(t, "events after the rewind", again.Events().Len(), 0)
	k.must(again, at(5, "user", text("5")))
	if err := k.append(k.a, at(6, "bot", text("6"))); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("a second try of the copy: %v", err)
	}
}

// TestForeignSessions: a session of another service is refused.
func TestForeignSessions(t *testing.T) {
	k := newDesk(t, open(t, ""))
	other, err := session.InMemoryService().Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.append(other.Session, at(1, "user")); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("a session of ADK: %v", err)
	}
	if err := k.append(newDesk(t, open(t, "")).a, at(1, "user")); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("a session of another deck: %v", err)
	}
}

// TestBadValues: what is not JSON, or no name, is refused and leaves nothing behind.
func TestBadValues(t *testing.T) {
	k := newDesk(t, open(t, ""))
	bad := at(1, "bot", &genai.Part{FunctionCall: &genai.FunctionCall{Name: "f", Args: map[string]any{"a": func() {}}}})
	for i, e := range []*session.Event{bad, at(2, "bot")} {
		if i == 1 {
			e.Actions.StateDelta = map[string]any{"a": make(chan int)}
		}
		if err := k.append(k.a, e); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("event %s: %v", e.ID, err)
		}
	}
	check(t, "events", k.get().Events().Len(), 0)
	for _, r := range []session.CreateRequest{
		{AppName: "app\n", UserID: "ada"}, {AppName: "app", UserID: "a\x00"}, {AppName: "app", UserID: "ada", SessionID: strings.Repeat("x", 600)},
		{AppName: "app", UserID: "ada", State: map[string]any{"f": func() {}}},
	} {
		if _, err := k.service.Create(t.Context(), &r); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("create %+v: %v", r, err)
		}
	}
}

// TestOpenRun: without the plugin each final response ends a run, and more events of the
// invocation are another run.
func TestOpenRun(t *testing.T) {
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("q")))
	k.must(k.a, at(2, "first", text("one")))
	k.must(k.a, at(3, "second", text("two")))
	other := at(4, "user", text("next"))
	other.InvocationID = "inv2"
	k.must(k.a, other)
	info, err := k.log().Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "open runs", len(info.Runs), 1)
	check(t, "open run", info.Runs[0].Invocation, "inv2")
	var ids []string
	for e := range k.log().Events(t.Context(), 0) {
		if e.Type == tapedeck.RunStarted || e.Type == tapedeck.RunFinished {
			ids = append(ids, e.Invocation)
		}
	}
	check(t, "runs", strings.Join(ids, " "), "inv1 inv1 inv1.2 inv1.2 inv2")
	check(t, "events", k.get().Events().Len(), 4)
}

// TestLeaseExpires: a tool may take longer than the lease; then another run continues.
func TestLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, Lease: time.Minute, NoSubscriptions: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close(context.Background())
		k := newDesk(t, d)
		k.must(k.a, at(1, "user", text("q")))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		info, _ := k.log().Info(t.Context())
		check(t, "status", info.Status, tapedeck.StatusInterrupted)
		k.must(k.a, at(2, "bot", text("a")))
		info, _ = k.log().Info(t.Context())
		check(t, "status", info.Status, tapedeck.StatusComplete)
		check(t, "events", k.get().Events().Len(), 2)
	})
}

// TestCancelWithoutPlugin: a cancel refuses all later events of the invocation.
func TestCancelWithoutPlugin(t *testing.T) {
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("q")))
	if _, err := k.log().Cancel(t.Context(), "inv1"); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := k.append(k.a, at(2+n, "bot", text("a"))); tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "was cancelled") {
			t.Errorf("an event after the cancel: %v", err)
		}
	}
	check(t, "events", k.get().Events().Len(), 1)
}

// TestLongRunning: a run that waits for a user's answer is interrupted, and the answer
// continues it.
func TestLongRunning(t *testing.T) {
	ask := &genai.Part{FunctionCall: &genai.FunctionCall{ID: "q1", Name: "approve", Args: map[string]any{}}}
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("do it")))
	e := at(2, "bot", ask)
	e.LongRunningToolIDs = []string{"q1"}
	k.must(k.a, e)
	k.must(k.a, at(3, "bot", &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "q1", Name: "approve", Response: map[string]any{"status": "pending"}}}))
	answer := at(4, "user", &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "q1", Name: "approve", Response: map[string]any{"ok": true}}})
	other := at(5, "user", text("something else"))
	other.InvocationID = "inv2"
	k.must(k.a, other)
	info, _ := k.log().Info(t.Context())
	check(t, "open run", info.Runs[0].Invocation, "inv2")
	waited := false
	for e := range k.log().Events(t.Context(), 0) {
		if e.Type == tapedeck.RunFinished && e.Invocation == "inv1" {
			d, err := payload.DecodeAs[payload.RunFinished](e)
			waited = err == nil && d.Outcome != nil && d.Outcome.Type == payload.OutcomeInterrupt && d.Outcome.Interrupts[0].ID == "q1"
		}
	}
	check(t, "the run waits", waited, true)
	b := k.get()
	k.must(b, answer)
	k.must(b, at(6, "bot", text("done")))
	info, _ = k.log().Info(t.Context())
	check(t, "status", info.Status, tapedeck.StatusComplete)
}

// TestErase: what is erased is in no event of ADK either.
func TestErase(t *testing.T) {
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("my name is Mallory"), text("hello")))
	k.must(k.a, at(2, "bot", text("Hi Mallory."), &genai.Part{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "greet", Args: map[string]any{"name": "Mallory"}}}))
	k.must(k.a, at(3, "bot", &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "greet", Response: map[string]any{"greeting": "Mallory!"}}}, text("Done.")))
	k.must(k.a, at(4, "bot", text("Bye.")))
	var ranges []tapedeck.OffsetRange
	for e := range k.log().Events(t.Context(), 0) {
		if e.Channel != tapedeck.ChannelSession && bytes.Contains(e.Data, []byte("Mallory")) {
			ranges = append(ranges, tapedeck.OffsetRange{From: e.Offset, To: e.Offset + 1})
		}
	}
	check(t, "events with the name", len(ranges), 4)
	if _, err := k.log().Erase(t.Context(), api.Erase{Events: ranges, Reason: "asked"}); err != nil {
		t.Fatal(err)
	}
	for e := range k.log().Events(t.Context(), 0) {
		if bytes.Contains(e.Data, []byte("Mallory")) {
			t.Errorf("the log has the name: %s", e.Data)
		}
	}
	var contents []*genai.Content
	for e := range k.get().Events().All() {
		contents = append(contents, e.Content)
	}
	check(t, "got", transcript(contents), "model calls greet map[]; model: Done.; model: Bye.;")
}

// TestSharedStateIsRepaired: if a process dies after an event and before its change of
// shared state, the next Get stores the change, once.
func TestSharedStateIsRepaired(t *testing.T) {
	k := newDesk(t, open(t, t.TempDir()))
	e := at(1, "bot", text("a"))
	e.Actions.StateDelta = map[string]any{"app:x": 1.0, "user:y": 2.0}
	k.must(k.a, e)
	for _, log := range []string{"adk-app:app", "adk-user:app:ada"} {
		if err := k.deck.Session(log).Delete(t.Context()); err != nil { // as if it had never been stored
			t.Fatal(err)
		}
	}
	for range 2 {
		now := k.get()
		x, _ := now.State().Get("app:x")
		y, _ := now.State().Get("user:y")
		check[any](t, "app:x", x, 1.0)
		check[any](t, "user:y", y, 2.0)
	}
	info, err := k.deck.Session("adk-app:app").Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "events of the app's state", info.Head, 4)
	k.must(k.get(), func() *session.Event {
		e := at(2, "bot")
		e.Actions.StateDelta = map[string]any{"app:x": 3.0}
		return e
	}())
	fork, err := k.log().Fork(t.Context(), api.Fork{})
	if err != nil {
		t.Fatal(err)
	}
	k.must(k.get(), func() *session.Event {
		e := at(3, "bot")
		e.Actions.StateDelta = map[string]any{"app:x": 4.0}
		return e
	}())
	for range 2 {
		done, err := k.service.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ada", SessionID: fork.ID()})
		if err != nil {
			t.Fatal(err)
		}
		x, _ := done.Session.State().Get("app:x")
		check[any](t, "app:x, which a fork does not set again", x, 4.0)
	}
}

// TestRewindKeepsSharedState: a rewind restores the state of the session only.
func TestRewindKeepsSharedState(t *testing.T) {
	k := newDesk(t, open(t, ""))
	e := at(1, "user", text("a"))
	e.Actions.StateDelta = map[string]any{"k": "new", "user:y": 2.0}
	k.must(k.a, e)
	if _, err := k.service.Rewind(t.Context(), &adk.RewindRequest{AppName: "app", UserID: "ada", SessionID: "s1", InvocationID: "inv1"}); err != nil {
		t.Fatal(err)
	}
	now := k.get().State()
	if _, err := now.Get("k"); err != session.ErrStateKeyNotExist {
		t.Errorf("the state of the session after the rewind: %v", err)
	}
	y, _ := now.Get("user:y")
	check[any](t, "user:y", y, 2.0)
}

// TestConcurrentRuns: of two runs in a session, one gets through, and nothing is lost or
// mixed.
func TestConcurrentRuns(t *testing.T) {
	w := newWorld(t, "", true, says("zero"), reply{parts: says("one").parts}, says("two"), says("three"))
	w.must("0")
	entered, leave := make(chan struct{}), make(chan struct{})
	w.model.replies[0].during = func() { close(entered); <-leave }
	first := make(chan error, 1)
	go func() {
		_, err := w.run(t.Context(), "1")
		first <- err
	}()
	<-entered
	w.must("2")
	close(leave)
	if err := <-first; err == nil || !strings.Contains(err.Error(), "has changed since it was read") {
		t.Errorf("the run that is late: %v", err)
	}
	check(t, "status", w.status(), tapedeck.StatusComplete)
	check(t, "got", w.got(), "user: 0; model: zero; user: 1; user: 2; model: two;")
}

// TestForgedEvents: what another program appends in the name of ADK and cannot be read does
// not lock ADK out.
func TestForgedEvents(t *testing.T) {
	k := newDesk(t, open(t, ""))
	k.must(k.a, at(1, "user", text("1")))
	m := payload.Message{ID: "x", Role: payload.RoleUser, Content: []byte(`[{"type":"text","text":"forged"}]`)}
	if _, err := k.log().Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: m})); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`"text"`, `{"timestamp":[]}`, `{"content":{"parts":[null,{},{},{}]}}`} {
		e := tapedeck.Event{Type: "other.event", Data: []byte(`{"metadata":{"adk":{"event":true,"shares":true,"items":[{"id":"x"},{"id":"x","part":-1},{"id":"x","part":7},{"id":"y"}]}},"rawEvent":` + raw + `}`)}
		if _, err := k.log().Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "events", k.get().Events().Len(), 2)
	k.must(k.get(), at(2, "bot", text("2")))
}

// TestNoInvocation: an event without an invocation is a part of the open run, or a run of
// its own.
func TestNoInvocation(t *testing.T) {
	k := newDesk(t, open(t, ""))
	e := at(1, "user", text("1"))
	e.InvocationID = ""
	k.must(k.a, e)
	k.must(k.get(), at(2, "user", text("2")))
	info, err := k.log().Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "open runs", len(info.Runs), 1)
	check(t, "events", k.get().Events().Len(), 2)
}
