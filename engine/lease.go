package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// leases has the times at which external runs were last heard of. They are in memory only:
// after a restart each run has a whole lease again.
type leases struct {
	since   time.Time     // when the engine started
	longest time.Duration // the lease of runs that have none of their own

	mu        sync.Mutex
	lastEvent map[leaseKey]time.Time
	short     map[leaseKey]time.Duration // the leases of runs that have one of their own
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
	for i := range events {
		if e := &events[i]; e.Type == tapedeck.RunStarted {
			ms := tapedeck.MetaOf(json.RawMessage(jsonobj.Member(e.Data, "metadata"))).LeaseMS
			l.keep(leaseKey{s.Gen, e.Invocation}, ms, now)
		}
	}
	for _, r := range s.Runs {
		if r.Owner != "" {
			continue
		}
		for i := range events {
			if events[i].Invocation == r.Invocation {
				l.keep(leaseKey{s.Gen, r.Invocation}, r.LeaseMS, now)
				break
			}
		}
	}
}

// of returns how long a run may be silent. leaseMS is what the run asks for; 0 for nothing.
func (l *leases) of(leaseMS int64) time.Duration {
	if leaseMS <= 0 || leaseMS > l.longest.Milliseconds() {
		return l.longest
	}
	return time.Duration(leaseMS) * time.Millisecond
}

// keep notes when a run was heard of, and the lease that it asks for; 0 for none.
func (l *leases) keep(key leaseKey, leaseMS int64, heard time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if heard.After(l.lastEvent[key]) {
		l.lastEvent[key] = heard
	}
	if leaseMS > 0 {
		l.short[key] = l.of(leaseMS)
	}
}

// learn notes the leases of runs that are open when the engine starts.
func (l *leases) learn(s *tapedeck.Session, now time.Time) {
	for _, r := range s.Runs {
		if r.Owner == "" && r.LeaseMS > 0 {
			l.keep(leaseKey{s.Gen, r.Invocation}, r.LeaseMS, now)
		}
	}
}

// isDue reports whether a run was silent for longer than the lease that it asks for. The run
// may have ended in the meantime: only the store knows.
func (l *leases) isDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, lease := range l.short {
		if now.Sub(l.lastEvent[key]) > lease {
			return true
		}
	}
	return false
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

// dropBefore drops the times before a moment, and runs with a lease of their own that had
// expired at the moment at: they have ended.
func (l *leases) dropBefore(before, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.short, func(key leaseKey, lease time.Duration) bool { return at.Sub(l.lastEvent[key]) > lease })
	maps.DeleteFunc(l.lastEvent, func(_ leaseKey, t time.Time) bool { return t.Before(before) })
}

// sweepEvery is how often sweep looks for runs with a lease of their own.
const sweepEvery = time.Second

// sweep ends external runs that were silent for longer than their leases. It looks into the
// store only when one of them may have to end, and now and then for all others.
func (e *Engine) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for all := e.options.Now().Add(e.options.Lease / 4); ; { // when all runs are looked at next
		select {
		case <-e.life.Done():
			return
		case <-tick.C:
		}
		now := e.options.Now()
		if now.Before(all) && !e.leases.isDue(now) {
			continue
		}
		if err := e.expireLeases(e.life, now); err != nil && e.life.Err() == nil {
			e.options.Logger.Warn("runs whose lease has expired could not be ended; trying again", "error", err)
		}
		all = now.Add(e.options.Lease / 4)
	}
}

func (e *Engine) expireLeases(ctx context.Context, begun time.Time) error {
	end := errorEnd(tapedeck.CodeLeaseExpired, "the program of the agent was silent for longer than the lease of its run; it may have died", tapedeck.StatusInterrupted)
	_, err := e.endRuns(ctx, end, func(s *tapedeck.Session, r tapedeck.OpenRun) bool {
		if r.Owner != "" {
			return false
		}
		heard := e.leases.lastHeard(s, r)
		if e.options.Now().Sub(heard) > e.leases.of(r.LeaseMS) {
			return true
		}
		if r.LeaseMS > 0 {
			e.leases.keep(leaseKey{s.Gen, r.Invocation}, r.LeaseMS, heard)
		}
		return false
	})
	if err == nil {
		e.leases.dropBefore(begun.Add(-e.options.Lease), begun)
	}
	return err
}

// Renew says that the program of an external run is alive. It is a [tapedeck.Conflict] if the
// run is not open, or if an engine drives it.
func (e *Engine) Renew(ctx context.Context, r api.Renewal) (api.Renewed, error) {
	s, err := e.session(ctx, r.Session)
	if err != nil {
		return api.Renewed{}, err
	}
	i := slices.IndexFunc(s.Runs, func(o tapedeck.OpenRun) bool { return o.Invocation == r.Invocation })
	switch {
	case i < 0:
		return api.Renewed{}, tapedeck.Errorf(tapedeck.Conflict, "run %s is not open in session %s", r.Invocation, s.ID).WithHint("its last event says how it ended")
	case s.Runs[i].Owner != "":
		return api.Renewed{}, tapedeck.Errorf(tapedeck.Conflict, "run %s is written by the server that drives it", r.Invocation).WithHint("only the run of a program elsewhere has a lease")
	}
	own := s.Runs[i].LeaseMS
	e.leases.keep(leaseKey{s.Gen, r.Invocation}, own, e.options.Now())
	return api.Renewed{Session: s.ID, Invocation: r.Invocation, LeaseMS: e.leases.of(own).Milliseconds()}, nil
}
