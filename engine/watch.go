package engine

import (
	"fmt"
	"time"

	"github.com/tapedeck/tapedeck"
)

// The codes of the RUN_ERROR that ends a run which takes too long.
const (
	codeTimeout     = "timeout"
	codeIdleTimeout = "idle_timeout"
)

// A timeout is the cause with which a run is stopped that takes too long.
type timeout struct{ code, message string }

func (t *timeout) Error() string { return t.message }

// A watch reports when a run takes too long. The channel of a limit that is not set
// is nil.
type watch struct {
	run, idle time.Duration
	runTimer  *time.Timer
	idleTimer *time.Timer

	tooLong        <-chan time.Time
	tooSilent      <-chan time.Time
	waitsForPeople bool // the idle timer is stopped until the agent no longer waits
}

func newWatch(run, idle time.Duration) *watch {
	w := &watch{run: run, idle: idle}
	if run > 0 {
		w.runTimer = time.NewTimer(run)
		w.tooLong = w.runTimer.C
	}
	if idle > 0 {
		w.idleTimer = time.NewTimer(idle)
		w.tooSilent = w.idleTimer.C
	}
	return w
}

func (w *watch) stop() {
	for _, t := range []*time.Timer{w.runTimer, w.idleTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// noteWritten restarts the idle timer after events of the agent were appended, and not
// before: an agent may wait while the store is slow. An agent that waits for people,
// or whose last event is a question, is not idle.
func (w *watch) noteWritten(events []tapedeck.Event, waits bool) {
	switch {
	case w.idleTimer == nil:
	case waits:
		w.idleTimer.Stop()
		w.waitsForPeople = true
	case len(events) > 0 && events[len(events)-1].Type == tapedeck.PermissionRequested:
		w.idleTimer.Stop()
	case len(events) > 0 || w.waitsForPeople:
		w.idleTimer.Reset(w.idle)
		w.waitsForPeople = false
	}
}

func (w *watch) errTooLong() error {
	return &timeout{codeTimeout, fmt.Sprintf("the run was stopped because it took longer than %s", w.run)}
}

func (w *watch) errTooSilent() error {
	return &timeout{codeIdleTimeout, fmt.Sprintf("the run was stopped because the agent said nothing for %s", w.idle)}
}

// limit returns the time limit of an agent: its own, or the common one.
func limit(own, all time.Duration) time.Duration {
	if own != 0 {
		return own
	}
	return all
}
