package deck_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// ended follows a run to its terminal event, which it returns.
func ended(t *testing.T, d *deck.Deck, run api.Started) tapedeck.Event {
	t.Helper()
	for e, err := range d.Follow(t.Context(), run.Session, run.Offset) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
			return e
		}
	}
	t.Fatal("the run has no terminal event")
	return tapedeck.Event{}
}

// breaks is an agent with a fault.
func breaks(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(func(tapedeck.Event, error) bool) { panic("the fault of a program") }
}

// TestPanicIsLogged: without a Logger the deck logs to the default one. A panic of an
// agent is there with its stack, and clients see nothing of it.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	d := openAt(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "faulty", Runner: tapedeck.RunnerFunc(breaks)}}})
	run, err := d.Run(t.Context(), api.Task{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	if e := ended(t, d, run); e.Type != tapedeck.RunError || strings.Contains(string(e.Data), "fault of") {
		t.Errorf("clients see %s %s", e.Type, e.Data)
	}
	if err := d.Close(t.Context()); err != nil { // nothing writes to the log any more
		t.Fatal(err)
	}
	for _, want := range []string{"the fault of a program", "agent=faulty", "session=" + run.Session, "deck_test.breaks"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
}

// TestReady: an agent that is not ready is listed with the reason, and takes no task.
func TestReady(t *testing.T) {
	missing := tapedeck.Errorf(tapedeck.Unavailable, "its folder does not exist")
	idle := func(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
		return func(func(tapedeck.Event, error) bool) {}
	}
	d, err := deck.Open(t.Context(), "", deck.Options{
		InMemory: true, Agents: []deck.Agent{{Name: "a", Runner: tapedeck.RunnerFunc(idle), Ready: func() error { return missing }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	if a := d.Agents()[0]; a.Unavailable != missing.Message {
		t.Errorf("%+v", a)
	}
	if _, err := d.Run(t.Context(), api.Task{Text: "go"}); tapedeck.KindOf(err) != tapedeck.Unavailable || !strings.Contains(err.Error(), missing.Message) {
		t.Errorf("it runs: %v", err)
	}
}

// TestKillAfter: a cancel waits for an agent that does not stop as long as KillAfter
// says, that of the agent or else that of the deck, and so does Close.
func TestKillAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		deaf := func(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
			return func(func(tapedeck.Event, error) bool) { <-end }
		}
		d, err := deck.Open(t.Context(), "", deck.Options{
			InMemory: true, KillAfter: time.Minute, Agents: []deck.Agent{
				{Name: "deaf", Runner: tapedeck.RunnerFunc(deaf)}, {Name: "slow", Runner: tapedeck.RunnerFunc(deaf), KillAfter: time.Hour},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		took := func(name string, want time.Duration, f func() error) {
			t.Helper()
			begin := time.Now()
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if d := time.Since(begin); d < want || d > want+time.Second {
				t.Errorf("%s took %v", name, d)
			}
		}
		run, err := d.Run(t.Context(), api.Task{Text: "go"})
		if err != nil {
			t.Fatal(err)
		}
		took("cancel", time.Minute, func() error { _, err := d.Session(run.Session).Cancel(t.Context(), ""); return err })
		if _, err := d.Run(t.Context(), api.Task{Text: "again", Agent: "slow"}); err != nil {
			t.Fatal(err)
		}
		took("close", time.Hour, func() error { return d.Close(context.Background()) })
		close(end)
	})
}
