// Package storetest is the contract of a [tapedeck.Store] as a suite that every
// store runs. A store is ready when it passes.
//
// What the interfaces in the root package say in a sentence, the scenarios here
// say in numbers. They are written as steps that can be read aloud, and after
// the last step of each everything is read once more, forwards and backwards
// and, if the store can be opened again, after that.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Store is a store under test with the seams that the suite needs to see all
// of it. Members that are nil are not offered, and what needs them is skipped.
type Store struct {
	tapedeck.Store

	// Reopen closes the store in good order and opens it again on the same data.
	Reopen func(testing.TB) tapedeck.Store

	// FailCommits makes every commit fail, until it is called with false. It
	// holds for the reopened store too.
	FailCommits func(fail bool)

	// Clock is what the store asks for the time.
	Clock *Clock
}

// A Clock is a time that stands still until it is moved.
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

// An opener opens a new, empty store. Who opens it closes it.
type opener func(testing.TB) Store

// Run runs the suite. open returns a new and empty store, which the suite
// closes; scenarios run in parallel, so it may be called by several goroutines.
// With -short there are fewer rounds of what is random or concurrent. For more
// of them, -rapid.checks says how often the model is compared (100 times).
func Run(t *testing.T, open func(testing.TB) Store) {
	for _, area := range []struct {
		name string
		run  func(*testing.T, opener)
	}{
		{"append", testAppend},
		{"envelope", testEnvelopes},
		{"refusals", testRefusals},
		{"producers", testProducers},
		{"read", testRead},
		{"create", testCreate},
		{"list", testList},
		{"forks", testForks},
		{"delete", testDelete},
		{"expiry", testExpiry},
		{"erase", testErase},
		{"observe", testObserve},
		{"faults", testFaults},
		{"close", testClose},
		{"cancelled", testCancelled},
		{"reopen", testReopen},
		{"concurrency", testConcurrency},
		{"races", testRaces},
		{"model", testModel},
	} {
		t.Run(area.name, func(t *testing.T) { area.run(t, open) })
	}
}

// start opens a store for one sub-test.
func start(t testing.TB, open opener) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), Store: open(t), witness: newWitness(), told: map[string]*told{}}
	w.watch()
	t.Cleanup(func() {
		if w.Store.Store != nil {
			_ = w.Close()
		}
	})
	return w
}

// rounds returns n, or less with -short.
func rounds(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}
