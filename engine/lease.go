package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// leases has the times of the last events of external runs. They are in memory only:
// after a restart each run has a whole lease again.
type leases struct {
	since time.Time // when the engine started

	mu        sync.Mutex
	lastEvent map[leaseKey]time.Time
}

// A leaseKey names a run. The session is needed because invocations are unique only
// within one.
type leaseKey struct {
	gen        int64
	invocation string
}

// note records that events of runs arrived. The store's writer calls it before it
// commits, so an event that arrives at the last moment counts.
func (l *leases) note(s *tapedeck.Session, events []tapedeck.Event, now time.Time) {
	for _, r := range s.Runs {
		if r.Owner != "" {
			continue
		}
		for i := range events {
			if events[i].Invocation == r.Invocation {
				l.mu.Lock()
				l.lastEvent[leaseKey{s.Gen, r.Invocation}] = now
				l.mu.Unlock()
				break
			}
		}
	}
}

// lastHeard returns the time of the last event of a run and of those that end with
// it.
func (l *leases) lastHeard(s *tapedeck.Session, r tapedeck.OpenRun) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.since
	for _, one := range withDescendants(s.Runs, r) {
		for _, t := range []time.Time{one.Started, l.lastEvent[leaseKey{s.Gen, one.Invocation}]} {
			if t.After(last) {
				last = t
			}
		}
	}
	return last
}

// dropBefore drops the times before a moment.
func (l *leases) dropBefore(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.lastEvent, func(_ leaseKey, t time.Time) bool { return t.Before(before) })
}

// sweep ends external runs that have had no event for as long as a lease.
func (e *Engine) sweep() {
	tick := time.NewTicker(max(e.options.Lease/4, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-e.life.Done():
			return
		case <-tick.C:
		}
		if err := e.expireLeases(e.life); err != nil && e.life.Err() == nil {
			e.options.Logger.Warn("runs whose lease has expired could not be ended; trying again", "error", err)
		}
	}
}

func (e *Engine) expireLeases(ctx context.Context) error {
	end := errorEnd(tapedeck.CodeLeaseExpired, "the agent has sent no event for "+e.options.Lease.String(), tapedeck.StatusInterrupted)
	_, err := e.endRuns(ctx, end, func(s *tapedeck.Session, r tapedeck.OpenRun) bool {
		return r.Owner == "" && e.options.Now().Sub(e.leases.lastHeard(s, r)) > e.options.Lease
	})
	if err == nil {
		e.leases.dropBefore(e.options.Now().Add(-e.options.Lease))
	}
	return err
}
