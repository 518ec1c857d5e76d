package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A world is an engine over a store that can be made slow, and made to fail.
type world struct {
	testing.TB
	*engine.Engine
	store *slowStore
	down  *atomic.Bool // commits fail
}

// A slowStore delays appends if asked to.
type slowStore struct {
	tapedeck.Store
	lag    atomic.Int64
	before func() // called once before the next append
}

func (s *slowStore) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	if d := time.Duration(s.lag.Load()); d > 0 {
		time.Sleep(d) // only in a bubble
	}
	return s.Store.Append(ctx, a)
}

// A talker is a runner that is a function. say reports false when no more events
// are accepted.
type talker func(ctx context.Context, in tapedeck.Invocation, say func(typ, data string) bool) error

func (f talker) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		left := false
		err := f(ctx, in, func(typ, data string) bool {
			left = left || !yield(tapedeck.Event{Type: typ, Data: json.RawMessage(data)}, nil)
			return !left
		})
		if err != nil && !left {
			yield(tapedeck.Event{}, err)
		}
	}
}

// silent sends nothing until it is stopped.
func silent(ctx context.Context, _ tapedeck.Invocation, _ func(string, string) bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// chatty begins a message with a tool call in it, and continues until it is
// stopped.
func chatty(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
	say("STEP_STARTED", `{"stepName":"s"}`)
	say("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"half a "}`)
	say("TOOL_CALL_START", `{"toolCallId":"c","toolCallName":"Read"}`)
	<-ctx.Done()
	return ctx.Err()
}

func newWorld(t testing.TB, runner talker, change ...func(*engine.Options)) *world {
	w := &world{TB: t, down: new(atomic.Bool)}
	w.store = &slowStore{Store: memory.New(memory.Options{FailCommit: func() error {
		if w.down.Load() {
			return errors.New("disk full")
		}
		return nil
	}})}
	w.Engine = w.open(runner, change...)
	return w
}

// open returns one more engine over the same store.
func (w *world) open(runner talker, change ...func(*engine.Options)) *engine.Engine {
	o := engine.Options{Store: w.store, Agents: []engine.Agent{
		{Agent: tapedeck.Agent{Name: "bot", Kind: "test"}, Runner: runner},
		{Agent: tapedeck.Agent{Name: "mute", Kind: "test"}, Runner: talker(silent)},
	}}
	for _, f := range change {
		f(&o)
	}
	e := engine.New(o)
	w.Cleanup(func() {
		w.down.Store(false)
		if err := e.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
	})
	return e
}

// inBubble runs a test in a world in a synctest bubble.
func inBubble(t *testing.T, runner talker, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, runner)) })
}

func (w *world) create(id string) {
	w.Helper()
	if _, err := w.Create(w.Context(), api.NewSession{ID: id}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) start(session string) api.Started {
	w.Helper()
	s, err := w.Start(w.Context(), api.Task{Session: session, Text: "go", Actor: "user:ada"})
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// append appends events, each written as its type, a space, and its data.
func (w *world) append(session string, lines ...string) error {
	_, err := w.Append(w.Context(), tapedeck.Append{Session: session, Events: parse(lines...)})
	return err
}

func parse(lines ...string) []tapedeck.Event {
	events := make([]tapedeck.Event, len(lines))
	for i, line := range lines {
		typ, data, _ := strings.Cut(line, " ")
		events[i] = tapedeck.Event{Type: typ, Data: json.RawMessage(data)}
	}
	return events
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refuses checks the kind and the text (message and hint) of an error.
func refuses(t testing.TB, err error, kind tapedeck.Kind, want string) {
	t.Helper()
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message+" | "+e.Hint, want) {
		t.Errorf("got %v (%s), want %s: %s", err, tapedeck.KindOf(err), kind, want)
	}
}

func (w *world) head(session string) tapedeck.Session {
	w.Helper()
	s, err := w.store.Head(context.Background(), session)
	w.must(err)
	return s
}

// events returns the log of a session. It checks that the offsets are dense, that
// a client of AG-UI can replay it, and that no run has ended twice.
func (w *world) events(session string) []tapedeck.Event {
	w.Helper()
	var events []tapedeck.Event
	v := order.NewVerifier()
	ends := map[string]int{}
	for ev, err := range tapedeck.Events(context.Background(), w.store, session, 0) {
		w.must(err)
		if ev.Offset != int64(len(events)) {
			w.Fatalf("offset %d follows %d events", ev.Offset, len(events))
		}
		if err := v.Add(&ev); err != nil {
			w.Fatalf("%s at offset %d cannot be replayed: %v", ev.Type, ev.Offset, err)
		}
		if ev.Type == tapedeck.RunFinished || ev.Type == tapedeck.RunError {
			ends[ev.Invocation]++
		}
		events = append(events, ev)
	}
	for id, n := range ends {
		if n != 1 {
			w.Fatalf("%s ended %d times", id, n)
		}
	}
	return events
}

// lines shows events without the parts that differ between runs: "offset
// milliseconds type data", with shortened ids.
func lines(events []tapedeck.Event) string {
	var b strings.Builder
	for _, ev := range events {
		data := string(ev.Data)
		if ev.Invocation != "" {
			data = strings.ReplaceAll(data, ev.Invocation, "INV")
		}
		if i := strings.Index(data, "eng_"); i >= 0 {
			data = data[:i] + "ENG" + data[i+30:]
		}
		if i := strings.Index(data, "msg_"); i >= 0 {
			data = data[:i] + "MSG" + data[i+30:]
		}
		fmt.Fprintf(&b, "%d %d %s %s\n", ev.Offset, ev.Time.Sub(events[0].Time).Milliseconds(), ev.Type, data)
	}
	return b.String()
}

func compare(t testing.TB, got, want string) {
	t.Helper()
	if want = strings.TrimLeft(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// types returns the types of events, without the session's own events.
func types(events []tapedeck.Event) string {
	var out []string
	for _, ev := range events {
		if !strings.HasPrefix(ev.Type, "session.") {
			out = append(out, ev.Type)
		}
	}
	return strings.Join(out, " ")
}

// said returns the deltas of each message, joined.
func said(t testing.TB, events []tapedeck.Event) map[string]string {
	out := map[string]string{}
	for _, ev := range events {
		var d struct{ MessageID, ToolCallID, Delta string }
		if json.Unmarshal(ev.Data, &d) != nil {
			t.Fatalf("%s", ev.Data)
		}
		if d.Delta != "" {
			out[d.MessageID+d.ToolCallID] += d.Delta
		}
	}
	return out
}

// end returns the last event of a session and its status.
func (w *world) end(session string) (tapedeck.Event, tapedeck.Status) {
	w.Helper()
	events := w.events(session)
	s := w.head(session)
	if len(s.Runs) > 0 {
		w.Fatalf("still running: %v", s.Runs)
	}
	return events[len(events)-1], s.Status
}
