package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A runOutcome is the status that the active runs give to a session: that of the run
// that ended last.
type runOutcome struct {
	status    tapedeck.Status
	resumable *bool // of a cancelled run
	endedAt   int64 // the offset of its end
}

// outcomeOf returns the outcome of a run. An open run counts as interrupted, and as
// the run that ended last.
func outcomeOf(r *view.Run) runOutcome {
	if r.EndOffset == nil {
		return runOutcome{status: tapedeck.StatusInterrupted, endedAt: math.MaxInt64}
	}
	s := runOutcome{status: r.Status, endedAt: *r.EndOffset}
	if s.status == tapedeck.StatusCancelled {
		s.resumable = new(canResume(r))
	}
	return s
}

// canResume reports whether a cancelled run can be resumed: it can unless its end says
// otherwise.
func canResume(r *view.Run) bool { return r.Resumable == nil || *r.Resumable }

// outcomeAfter returns the outcome of a session after a jump.
func (e *Engine) outcomeAfter(ctx context.Context, s *tapedeck.Session, t *target) (runOutcome, error) {
	if len(s.Runs) > 0 { // runs of threads that the jump does not touch
		return runOutcome{status: tapedeck.StatusRunning}, nil
	}
	if t.thread == "" {
		return e.outcomeAt(ctx, s.ID, t.to)
	}
	others, err := e.newestRun(ctx, s.ID, s.Head, func(thread string) bool { return !t.includesThread(thread) })
	if err != nil {
		return runOutcome{}, err
	}
	own, err := e.newestRun(ctx, s.ID, t.to, t.includesThread)
	if err != nil || others.endedAt > own.endedAt || own.status == tapedeck.StatusIdle {
		return others, err
	}
	return own, nil
}

// outcomeAt returns the outcome of a session at an offset.
func (e *Engine) outcomeAt(ctx context.Context, session string, at int64) (runOutcome, error) {
	return e.newestRun(ctx, session, at, func(string) bool { return true })
}

// newestRun returns the outcome of the run that ended last before an offset, among the
// wanted threads. It looks at the threads from the one with the newest event to the one
// with the oldest. The end of a run is an event of its thread. So a thread whose newest
// event is older than the newest end found so far need not be read. A thread with the
// status "interrupted" is read always: a jump or a fork removed the end of its run.
func (e *Engine) newestRun(ctx context.Context, session string, at int64, wanted func(string) bool) (runOutcome, error) {
	newest := runOutcome{status: tapedeck.StatusIdle, endedAt: -1}
	all, err := e.views.Snapshot(ctx, session, view.Query{At: new(at), Limit: 1})
	if err != nil {
		return newest, err
	}
	threads := slices.SortedFunc(slices.Values(all.Threads), func(a, b view.Thread) int { return cmp.Compare(b.Last, a.Last) })
	for _, th := range threads {
		switch {
		case !wanted(th.Name) || th.Status == tapedeck.StatusIdle:
			continue
		case th.Status == tapedeck.StatusPending:
			if newest.endedAt < 0 {
				newest.status = th.Status
			}
			continue
		case th.Status == tapedeck.StatusRunning:
			return runOutcome{status: tapedeck.StatusInterrupted, endedAt: math.MaxInt64}, nil
		case th.Status != tapedeck.StatusInterrupted && th.Last < newest.endedAt:
			continue
		}
		run, ok, err := e.lastRun(ctx, session, th.Name, at)
		if err != nil {
			return newest, err
		}
		if !ok {
			continue
		}
		if st := outcomeOf(&run); st.endedAt > newest.endedAt {
			newest = st
		}
	}
	return newest, nil
}

// lastRun returns the newest active run of a thread at an offset.
func (e *Engine) lastRun(ctx context.Context, session, thread string, at int64) (view.Run, bool, error) {
	s, err := e.views.Snapshot(ctx, session, view.Query{At: new(at), Thread: thread, Limit: 1})
	if err != nil || len(s.Runs) == 0 {
		return view.Run{}, false, err
	}
	return s.Runs[len(s.Runs)-1], true, nil
}
