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

// A timeout is why a run was stopped that takes too long.
type timeout struct{ code, message string }

func (t *timeout) Error() string { return t.message }

// A watch tells when a run takes too long. A channel of a limit that is not set
// never gives anything.
type watch struct {
	run, idle time.Duration
	runTimer  *time.Timer
	idleTimer *time.Timer

	tooLong        <-chan time.Time
	tooSilent      <-chan time.Time
	waitsForPeople bool // the agent waits for people, and says when it no longer does
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

// heard says that the agent has spoken and that it is written down: while the
// store takes its time the agent may be waiting for us. An agent is not idle that
// waits for people to answer, or that has asked something and not gone on.
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

// limit returns the time limit of an agent: its own, or that of all.
func limit(own, all time.Duration) time.Duration {
	if own != 0 {
		return own
	}
	return all
}
