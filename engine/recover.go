package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
)

// Recover ends the runs that an earlier process left open, each with one terminal
// event, and returns how many there were. A run whose agent works elsewhere continues
// instead, see [runner.Reattaching]. It also deletes the sessions of imports that
// were not completed. Call it at the start, when no other process uses the store: then
// the engines that owned these runs are dead. It does not end external runs. With
// [Options.LeaveRuns], runs that would continue stay as they are.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	undone := e.undoImports(ctx)
	// An incomplete import can have events that look like a run of this server. No
	// process is killed until all incomplete imports are deleted.
	kill := e.options.KillLeftover != nil && undone == nil
	rec := &recovery{engine: e, kill: kill, reattaches: e.hasReattaching(),
		end: errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)}
	err := e.eachOpen(ctx, rec.session)
	if undone == nil && !e.options.LeaveRuns { // an incomplete import can have inputs that no user of this server has sent
		err = errors.Join(err, e.feedAll(ctx))
	}
	return int(rec.ended.Load()), errors.Join(undone, err)
}

// hasReattaching reports whether a run of one of the agents may continue after a crash.
func (e *Engine) hasReattaching() bool {
	return slices.ContainsFunc(slices.Concat(e.options.Agents, e.options.Unlisted), func(a Agent) bool {
		_, ok := a.Runner.(runner.Reattaching)
		return ok || isDurable(&a)
	})
}

// A recovery continues or ends what an earlier process left open.
type recovery struct {
	engine     *Engine
	kill       bool // the processes that agents left
	reattaches bool
	end        terminal
	ended      atomic.Int64
}

// session recovers the runs of a session. It reads the session once, as long as nothing is
// appended, because there may be ten thousand of them.
func (r *recovery) session(ctx context.Context, s *tapedeck.Session) error {
	e := r.engine
	defer e.answering.lock(s.ID)()
	log := &onePage{Log: e.store, session: s.ID}
	left := map[string]bool{} // invocations
	failed := r.reattach(ctx, log, s, left)
	n, err := e.endRunsOf(ctx, log, s, r.end, r.kill, func(_ *tapedeck.Session, o tapedeck.OpenRun) bool {
		return r.abandoned(&o) && !left[o.Invocation]
	})
	r.ended.Add(int64(n))
	return errors.Join(failed, err)
}

// abandoned reports whether an earlier process left a run.
func (r *recovery) abandoned(o *tapedeck.OpenRun) bool {
	return o.Owner != "" && o.Owner != r.engine.id && !r.engine.Drives(o.Invocation)
}

// reattach continues the runs of a session that can continue: the agent works elsewhere, or
// the state of the run is in the log. In the second case it also ends the processes that the
// agent left. With [Options.LeaveRuns] it only adds the runs to left.
func (r *recovery) reattach(ctx context.Context, log *onePage, s *tapedeck.Session, left map[string]bool) (failed error) {
	if !r.reattaches {
		return nil
	}
	e := r.engine
	for _, o := range s.Runs {
		if !r.abandoned(&o) || o.Parent != "" {
			continue
		}
		var err error
		if e.options.LeaveRuns {
			left[o.Invocation], err = e.continues(ctx, log, s, &o)
		} else {
			_, err = e.reattach(ctx, log, s, &o, r.kill)
		}
		failed = errors.Join(failed, ofRun(s, &o, err))
	}
	return failed
}

// endRuns ends the open runs that choose selects.
func (e *Engine) endRuns(ctx context.Context, end terminal, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (int, error) {
	var n atomic.Int64
	err := e.eachOpen(ctx, func(ctx context.Context, s *tapedeck.Session) error {
		if !slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return choose(s, r) }) {
			return nil
		}
		defer e.answering.lock(s.ID)()
		ended, err := e.endRunsOf(ctx, &onePage{Log: e.store, session: s.ID}, s, end, false, choose)
		n.Add(int64(ended))
		return err
	})
	return int(n.Load()), err
}

// endRunsOf ends the open runs of a session that choose selects. With kill it also ends
// the processes that their agents left running. The caller has locked answering.
func (e *Engine) endRunsOf(ctx context.Context, log *onePage, s *tapedeck.Session, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (n int, failed error) {
	for _, r := range s.Runs {
		if _, sub := parentRun(s.Runs, &r); sub || !choose(s, r) {
			continue // the run of a sub-agent ends with its parent run
		}
		switch err := e.endRun(ctx, log, s, r, end, kill, choose); {
		case err == nil:
			n++
		case isOver(err), errors.Is(err, errAlive):
		default: // one unreadable session must not keep the runs of others open
			failed = errors.Join(failed, ofRun(s, &r, err))
		}
	}
	return n, failed
}

// openAtOnce is how many sessions eachOpen handles at once. Their commits share a sync: a
// server that takes over ten thousand runs of a dead one needs seconds, not minutes.
const openAtOnce = 128

// eachOpen calls do for each session with an open run, for several at once. An error of one
// session does not keep do from the others, unless the store is unavailable.
func (e *Engine) eachOpen(ctx context.Context, do func(context.Context, *tapedeck.Session) error) error {
	var mu sync.Mutex // failed, stop
	failed, stop := error(nil), false
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor, Limit: 1000})
		if err != nil {
			return errors.Join(failed, err)
		}
		var working sync.WaitGroup
		next := make(chan *tapedeck.Session)
		for range min(openAtOnce, len(page.Sessions)) {
			working.Go(func() {
				for s := range next {
					err := do(ctx, s)
					mu.Lock()
					failed = errors.Join(failed, err)
					stop = stop || tapedeck.KindOf(err) == tapedeck.Unavailable || ctx.Err() != nil
					mu.Unlock()
				}
			})
		}
		for i := range page.Sessions {
			mu.Lock()
			over := stop
			mu.Unlock()
			if over {
				break
			}
			next <- &page.Sessions[i]
		}
		close(next)
		working.Wait()
		if cursor = page.Next; cursor == "" || stop {
			return failed
		}
	}
}

// ofRun says to which run an error belongs. It is nil for none.
func ofRun(s *tapedeck.Session, r *tapedeck.OpenRun, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("run %s in session %s: %w", r.Invocation, s.ID, err)
}

// errAlive means that an event of a run arrived after the run was chosen.
var errAlive = errors.New("the run is alive")

// endRun ends a chosen run, if it would still be chosen now.
func (e *Engine) endRun(ctx context.Context, log *onePage, s *tapedeck.Session, r tapedeck.OpenRun, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) error {
	defer log.forget() // what follows appends
	t, err := trailOf(ctx, log, s.ID, withDescendants(s.Runs, r))
	if err != nil {
		return err
	}
	if kill && !s.Closed { // an imported closed session can have an open run
		e.killLeftovers(s.ID, r, &t)
	}
	if err := e.restoreLedger(ctx, log, s); err != nil {
		return err
	}
	end.before = t.cancelAnswers()
	return e.finish(ctx, s.ID, r.Invocation, end, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if !choose(s, r) {
			return errAlive
		}
		return nil
	}).err
}
