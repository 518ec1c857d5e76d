// Package storetest is the contract of a [tapedeck.Store] as a suite that every
// store runs. A store is ready when it passes.
//
// The scenarios test in detail what the interfaces in the root package promise. They
// are lists of steps. After the last step the suite reads all sessions again,
// forwards and backwards, and compares them with what an observer of the store was
// notified of. If the store can be reopened, it does so again after that.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Store is a store under test, with the hooks that the suite needs for its faults
// and times. The suite skips the tests that need a member that is nil.
type Store struct {
	tapedeck.Store

	// Reopen closes the store cleanly and opens it again on the same data.
	Reopen func(testing.TB) tapedeck.Store

	// FailCommits makes every commit fail until it is called with false, also
	// those of the reopened store.
	FailCommits func(fail bool)

	// Clock is the clock of the store.
	Clock *Clock
}

// A Clock is a clock that moves only by Advance.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at some time of day.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// An opener opens a new, empty store. The caller closes it.
type opener func(testing.TB) Store

// Run runs the suite. open returns a new and empty store, which the suite closes.
// Scenarios run in parallel, so several goroutines may call open. With -short, random
// and concurrent tests have fewer rounds. -rapid.checks sets the number of runs of
// the comparison with the model; the default is 100.
func Run(t *testing.T, open func(testing.TB) Store) {
	for _, area := range areas {
		t.Run(area.name, func(t *testing.T) { area.run(t, open) })
	}
}

// RunReopened runs the part of the suite that shows whether a store that is reopened has
// everything: for a Reopen that does more than to close and open a store.
func RunReopened(t *testing.T, open func(testing.TB) Store) {
	for _, area := range areas {
		if area.reopened {
			t.Run(area.name, func(t *testing.T) { area.run(t, open) })
		}
	}
}

var areas = []struct {
	name     string
	run      func(*testing.T, opener)
	reopened bool // it is about what is stored, and reopens
}{
	{"append", testAppend, false},
	{"envelope", testEnvelopes, true},
	{"refusals", testRefusals, false},
	{"producers", testProducers, true},
	{"parts", testParts, false},
	{"read", testRead, false},
	{"create", testCreate, false},
	{"list", testList, false},
	{"forks", testForks, true},
	{"delete", testDelete, true},
	{"expiry", testExpiry, true},
	{"clock", testClock, true},
	{"erase", testErase, true},
	{"observe", testObserve, false},
	{"faults", testFaults, false},
	{"close", testClose, false},
	{"cancelled", testCancelled, false},
	{"reopen", testReopen, true},
	{"concurrency", testConcurrency, false},
	{"races", testRaces, false},
	{"model", testModel, true},
	{"entries", testEntries, true},
}

// start opens a store for a sub-test.
func start(t testing.TB, open opener) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), Store: open(t), witness: newWitness(), expected: map[string]*expected{}}
	w.watch()
	t.Cleanup(func() {
		if w.Store.Store != nil {
			_ = w.Close()
		}
	})
	return w
}

// rounds returns n, or less with -short or after [Quick].
func rounds(n, short int) int {
	if testing.Short() || quick {
		return short
	}
	return n
}
