// Package runnertest is the contract of [tapedeck.Runner] as a suite that every
// runner calls from a test of its own.
package runnertest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Harness is a runner with tasks whose outcome is known. The ids of the
// invocations are set by the suite.
type Harness struct {
	Runner tapedeck.Runner

	Talk    tapedeck.Invocation  // says something in several events and ends by itself
	Text    string               // what Talk says in all its text messages; "" to leave it open
	Endless tapedeck.Invocation  // says something and goes on until it is cancelled
	Fail    *tapedeck.Invocation // ends with an error; nil for a runner that cannot be made to fail

	Abilities

	// Bubble says that the runner does everything in goroutines of this
	// process and waits only for timers and channels. Then each test runs in a
	// bubble of testing/synctest: no real time passes, and a goroutine that is
	// left behind is found with certainty.
	Bubble bool

	// Patience is how long anything may take; 0 for ten seconds.
	Patience time.Duration
}

// Run tests the runners that open makes, a new one for each test.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, tt := range append([]suiteTest{
		{"what it yields is in order and complete", inOrder},
		{"it leaves to the engine what is the engine's", unstamped},
		{"it stops when it is cancelled", cancelled},
		{"it stops at once if it was cancelled before it began", cancelledBefore},
		{"it holds the agent back for a slow reader and drops nothing", slowReader},
		{"an error ends it", failing},
		{"nothing of it begins that is not stored", unstored},
		{"leaving the loop ends it", leaving},
		{"runs at the same time do not mix", together},
		{"it can run again", again},
	}, abilityTests...) {
		t.Run(tt.name, func(t *testing.T) { inBubble(t, open, tt.test) })
	}
}

type suiteTest struct {
	name string
	test func(*testing.T, Harness)
}

// inBubble runs a test in a bubble if the harness allows it. The harness is
// made outside first, to be asked, and then again where it is used.
func inBubble(t *testing.T, open func(testing.TB) Harness, test func(*testing.T, Harness)) {
	probe := open(t)
	run := func(t *testing.T) {
		h := open(t)
		if h.Patience == 0 {
			h.Patience = 10 * time.Second
		}
		test(t, h)
	}
	if probe.Bubble {
		synctest.Test(t, run)
		return
	}
	noLeaks(t, run)
}

// collect runs in to its end and returns what it yielded.
func (h *Harness) collect(t *testing.T, ctx context.Context, in tapedeck.Invocation) ([]tapedeck.Event, error) {
	t.Helper()
	var events []tapedeck.Event
	var failed error
	h.within(t, func() {
		for e, err := range h.Runner.Run(ctx, in) {
			if failed != nil {
				t.Errorf("it yielded %s after its error", e.Type)
			}
			if err != nil {
				failed = err
				continue
			}
			events = append(events, e)
		}
	})
	return events, failed
}

// within fails the test if f does not return in time. In a bubble, time passes
// only when everything waits, so only a runner that waits for ever is late.
func (h *Harness) within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	limit := h.Patience
	if h.Bubble {
		limit = 24 * time.Hour
	}
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("it did not end within %v", limit) // not Fatal: together calls it in other goroutines
	}
}

func invocation(in tapedeck.Invocation, id string) tapedeck.Invocation {
	in.ID, in.Session, in.Thread = id, "ses_test", tapedeck.MainThread
	if in.History == nil {
		in.History = func(context.Context) iter.Seq2[tapedeck.Event, error] {
			return func(func(tapedeck.Event, error) bool) {}
		}
	}
	return in
}

// unstored: a runner whose agent is a process tells which, waits until that is
// stored, and begins nothing if it cannot be.
func unstored(t *testing.T, h Harness) {
	in := invocation(h.Talk, "inv_1")
	asked, told := 0, 0
	in.Stored = func(context.Context) error { asked++; return errors.New("the disk is full") }
	events, _ := h.collect(t, t.Context(), in)
	for _, e := range events {
		if e.Type == tapedeck.AgentStarted {
			told++
		} else if told > 0 {
			t.Errorf("%s %s: it has begun", e.Type, e.Data)
		}
	}
	if asked != told {
		t.Errorf("it told of %d processes, and waited for %d to be stored", told, asked)
	}
}
