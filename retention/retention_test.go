package retention_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/retention"
	"github.com/tapedeck/tapedeck/store/memory"
)

const day = 24 * time.Hour

// A fixture is a store with a worker on it, in a bubble with a clock of its own.
type fixture struct {
	*memory.Store
	t     *testing.T
	lists atomic.Int64 // how many pages were read
}

func (f *fixture) List(ctx context.Context, q tapedeck.Filter) (tapedeck.SessionPage, error) {
	f.lists.Add(1)
	return f.Store.List(ctx, q)
}

func newFixture(t *testing.T) *fixture {
	return &fixture{Store: memory.New(memory.Options{}), t: t}
}

// create creates a session of an owner with further events, such as RUN_STARTED.
func (f *fixture) create(id, owner, labels string, more ...string) {
	f.t.Helper()
	events := []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: fmt.Appendf(nil, `{"owner":%q,"labels":{%s}}`, owner, labels)}}
	for _, m := range more {
		typ, data, _ := strings.Cut(m, " ")
		events = append(events, tapedeck.Event{Type: typ, Invocation: "inv", Data: []byte(data)})
	}
	if _, err := f.Create(f.t.Context(), tapedeck.Spec{ID: id, Events: events}); err != nil {
		f.t.Fatal(err)
	}
}

// run starts a worker and returns a function that tells which sessions there are.
func (f *fixture) run(p retention.Policy) (left func() string) {
	w := retention.New(retention.Options{Policy: p, Store: f, Logger: slog.New(slog.DiscardHandler), Delete: func(ctx context.Context, c retention.Candidate) (bool, error) {
		return true, f.Delete(ctx, c.Session.ID)
	}})
	f.Observe(w.Observer())
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	f.t.Cleanup(func() { cancel(); <-done })
	return func() string {
		time.Sleep(11 * time.Minute) // in the bubble: a pass
		synctest.Wait()
		page, err := f.Store.List(f.t.Context(), tapedeck.Filter{Limit: 1000})
		if err != nil {
			f.t.Fatal(err)
		}
		var ids []string
		for _, s := range page.Sessions {
			ids = append(ids, s.ID)
		}
		slices.Sort(ids)
		return strings.Join(ids, " ")
	}
}

const (
	started  = `RUN_STARTED {"threadId":"main","runId":"inv"}`
	finished = `RUN_FINISHED {"threadId":"main","runId":"inv"}`
)

func TestOldSessionsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.create("old", "ada", "")
		f.create("ended", "ada", "", started, finished)
		f.create("kept", "ada", `"keep":""`)
		f.create("running", "ada", "", started)
		f.create("of_bob", "bob", "")
		f.create("renamed", "ada", "")
		left := f.run(retention.Policy{Rule: retention.Rule{Age: 30 * day}, Owners: map[string]retention.Rule{"bob": {Age: 60 * day}}})
		if got := left(); got != "ended kept of_bob old renamed running" {
			t.Errorf("at first: %s", got)
		}
		time.Sleep(20 * day)
		if _, err := f.Append(t.Context(), tapedeck.Append{Session: "renamed", Events: []tapedeck.Event{{Type: tapedeck.SessionRenamed, Data: []byte(`{"title":"x"}`)}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * day)
		f.create("new", "ada", "")
		if got := left(); got != "kept new of_bob renamed running" {
			t.Errorf("after 31 days: %s", got)
		}
		time.Sleep(30 * day)
		if got := left(); got != "kept running" {
			t.Errorf("after 61 days: %s", got)
		}
	})
}

func TestSurplusGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.create("a1", "ada", "")
		f.create("a2_running", "ada", "", started)
		f.create("a3_kept", "ada", `"hold":"x"`)
		f.create("nobodys", "", "")
		for _, id := range []string{"a4", "a5", "b1", "b2", "c1", "c2"} {
			time.Sleep(time.Minute)
			f.create(id, map[byte]string{'a': "ada", 'b': "bob", 'c': "cleo"}[id[0]], "")
		}
		left := f.run(retention.Policy{Rule: retention.Rule{Sessions: 2}, Owners: map[string]retention.Rule{"bob": {Sessions: 1}, "cleo": {}}, Keep: "hold"})
		if got := left(); got != "a2_running a3_kept a5 b2 c1 c2 nobodys" {
			t.Errorf("at first: %s", got)
		}
		f.create("b3", "bob", "")
		if got := left(); got != "a2_running a3_kept a5 b3 c1 c2 nobodys" {
			t.Errorf("with another one of bob: %s", got)
		}
	})
}

// TestCostOfAPass: a pass with nothing to do reads one page, however many sessions there
// are.
func TestCostOfAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for n := range 2000 {
			f.create(fmt.Sprintf("s%d", n), "ada", "")
		}
		left := f.run(retention.Policy{Rule: retention.Rule{Age: day, Sessions: 5000}})
		left()
		f.lists.Store(0)
		left()
		if n := f.lists.Load(); n > 1 {
			t.Errorf("a pass has read %d pages", n)
		}
	})
}

func TestInputsAndQuestionsStay(t *testing.T) {
	p := retention.Policy{Rule: retention.Rule{Age: day}}
	for name, s := range map[string]tapedeck.Session{
		"run": {Runs: []tapedeck.OpenRun{{}}}, "question": {Waiting: []tapedeck.OpenQuestion{{}}}, "input": {Inputs: []tapedeck.WaitingInput{{}}},
		"label": {Labels: map[string]string{"keep": ""}},
	} {
		if !p.Keeps(&s) {
			t.Errorf("a session with an open %s does not stay", name)
		}
	}
	if p.Keeps(&tapedeck.Session{Labels: map[string]string{"keeper": ""}}) {
		t.Error("a session stays for no reason")
	}
}
