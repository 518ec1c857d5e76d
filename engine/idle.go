package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
)

// waitingCheck is how often AwaitIdle looks whether a run waits for a person now.
const waitingCheck = 200 * time.Millisecond

// AwaitIdle waits until this engine drives no run that works and begins none, or until
// ctx is done. A run that continues after a restart does not work while it waits for a
// person.
func (e *Engine) AwaitIdle(ctx context.Context) error {
	tick := time.NewTicker(waitingCheck)
	defer tick.Stop()
	for {
		if err := e.feeder.settleAll(ctx); err != nil {
			return err
		}
		r, err := e.workingRun(ctx)
		if r == nil || err != nil {
			return err
		}
		select {
		case <-r.done:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// workingRun returns a run that works, nil if there is none.
func (e *Engine) workingRun(ctx context.Context) (*run, error) {
	e.mu.Lock()
	runs := slices.Collect(maps.Values(e.runs))
	e.mu.Unlock()
	for _, r := range runs {
		if !r.durable {
			return r, nil
		}
	}
	for _, r := range runs {
		s, err := e.store.Head(ctx, r.in.Session)
		if tapedeck.KindOf(err) == tapedeck.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !waitsForPerson(&s, r.in.ID) {
			return r, nil
		}
	}
	return nil, nil
}

// waitsForPerson reports whether an open run, or one that it started, has an open question.
func waitsForPerson(s *tapedeck.Session, invocation string) bool {
	i := slices.IndexFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
	if i < 0 {
		return false
	}
	all := withDescendants(s.Runs, s.Runs[i])
	return slices.ContainsFunc(s.Waiting, func(q tapedeck.OpenQuestion) bool {
		return slices.ContainsFunc(all, func(r tapedeck.OpenRun) bool { return r.Invocation == q.Invocation })
	})
}

// Running returns how many runs this engine drives, and in how many sessions it is about
// to begin some.
func (e *Engine) Running() int {
	return e.feeder.working() + e.driven()
}

func (e *Engine) driven() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}
