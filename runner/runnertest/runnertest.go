// Package runnertest is the contract of [tapedeck.Runner] as a test suite. Every runner
// calls it from a test of its own.
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

// A Harness is a runner with tasks whose outcome is known. The suite sets the ids of the
// invocations.
type Harness struct {
	Runner tapedeck.Runner

	Talk    tapedeck.Invocation  // yields text in several events and ends by itself
	Text    string               // the text of all messages of Talk; "" to skip the comparison
	Endless tapedeck.Invocation  // yields text and continues until it is cancelled
	Fail    *tapedeck.Invocation // ends with an error; nil if no task makes the runner fail

	Abilities

	// AnyConfig says that the config of a task can have any member.
	AnyConfig bool

	// Wordless says that the agent yields events and never text.
	Wordless bool

	// Bubble says that the runner works only in goroutines of this process and waits
	// only for timers and channels. Then each test runs in a bubble of testing/synctest:
	// no real time passes, and every leaked goroutine is found.
	Bubble bool

	// Patience is the time limit of each run; 0 for ten seconds.
	Patience time.Duration
}

// Run tests a runner. It calls open for a new harness in each test.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, tt := range append([]suiteTest{
		{"its events are in order and complete", inOrder},
		{"it does not set what the engine sets", unstamped},
		{"it stops when it is cancelled", cancelled},
		{"it stops at once if it was cancelled before it began", cancelledBefore},
		{"a slow reader gets every event", slowReader},
		{"an error ends it", failing},
		{"no process begins before it is stored", unstored},
		{"breaking out of the loop ends it", leaving},
		{"concurrent runs do not mix", together},
		{"it can run again", again},
		{"it refuses a config that it cannot use", unusable},
	}, abilityTests...) {
		t.Run(tt.name, func(t *testing.T) { inBubble(t, open, tt.test) })
	}
}

type suiteTest struct {
	name string
	test func(*testing.T, Harness)
}

// inBubble runs a test in a bubble if the harness allows it. It opens one harness outside
// to read Bubble, and another one inside for the test.
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

// collect runs an invocation to its end and returns its events and its error.
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

// within fails the test if f does not return in time. In a bubble, time passes only when
// all goroutines wait, so only a runner that waits for ever is late.
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

// unstored checks a runner whose agent is a process: it yields the identity of the process,
// waits until that is stored, and begins nothing if that fails.
func unstored(t *testing.T, h Harness) {
	in := invocation(h.Talk, "inv_1")
	waits, announced := 0, 0
	in.Stored = func(context.Context) error { waits++; return errors.New("the disk is full") }
	events, _ := h.collect(t, t.Context(), in)
	for _, e := range events {
		if e.Type == tapedeck.AgentStarted {
			announced++
		} else if announced > 0 {
			t.Errorf("%s %s: the process has begun", e.Type, e.Data)
		}
	}
	if waits != announced {
		t.Errorf("the runner announced %d processes, and waited for %d to be stored", announced, waits)
	}
}
