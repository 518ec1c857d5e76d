// Package wallclock waits for a moment of the clock. A timer of the standard library measures
// how long the machine runs: a clock that is set does not move it, and it stands still while
// the machine is suspended.
package wallclock

import (
	"sync"
	"time"
)

// Look is the longest time between two looks at the clock. What waits for a moment happens at
// most this much later than the clock says.
const Look = time.Minute

// Until returns how long to wait before the next look at the clock: until a moment, but at
// most [Look], and at least 0. now is what the clock shows.
func Until(at, now time.Time) time.Duration {
	return min(max(0, at.Round(0).Sub(now.Round(0))), Look) // Round drops the reading that does not follow the clock
}

// AfterFunc calls f in a goroutine of its own once the clock shows a moment. stop prevents
// the call; it does not wait for one that has begun.
func AfterFunc(at time.Time, f func()) (stop func()) {
	w := &waiter{at: at, call: f}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(Until(at, time.Now()), w.look)
	return w.stop
}

type waiter struct {
	mu      sync.Mutex
	at      time.Time
	call    func()
	timer   *time.Timer
	stopped bool
}

func (w *waiter) look() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	if rest := Until(w.at, time.Now()); rest > 0 {
		w.timer.Reset(rest)
		w.mu.Unlock()
		return
	}
	w.stopped = true
	w.mu.Unlock()
	w.call()
}

func (w *waiter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}
