package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// leases has when runs that are written from outside were heard of. It is kept in
// memory: after a restart each has a whole lease again.
type leases struct {
	since time.Time // nothing could be heard before

	mu        sync.Mutex
	lastEvent map[leaseKey]time.Time
}

// A lessee is a run: invocations have names of their own in each session only.
type leaseKey struct {
	gen        int64
	invocation string
}

// note takes down which runs of a session events are of. The store's writer asks
// for it, so an event that comes at the last moment counts.
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

// last returns when a run, or one that ends with it, was last heard of.
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

// forget forgets what was heard before a moment.
func (l *leases) dropBefore(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.lastEvent, func(_ leaseKey, t time.Time) bool { return t.Before(before) })
}

// sweep ends runs that are written from outside when nothing was heard of them
// for as long as a lease lasts.
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
			e.options.Logger.Warn("runs whose lease has run out could not be ended; trying again", "error", err)
		}
	}
}

func (e *Engine) expireLeases(ctx context.Context) error {
	end := errorEnd(tapedeck.CodeLeaseExpired, "nothing was heard of the agent for "+e.options.Lease.String(), tapedeck.StatusInterrupted)
	_, err := e.endRuns(ctx, end, false, func(s *tapedeck.Session, r tapedeck.OpenRun) bool {
		return r.Owner == "" && e.options.Now().Sub(e.leases.lastHeard(s, r)) > e.options.Lease
	})
	if err == nil {
		e.leases.dropBefore(e.options.Now().Add(-e.options.Lease))
	}
	return err
}
