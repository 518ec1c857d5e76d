package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
)

// Recover ends the runs that an earlier process left open, each with one terminal
// event, and returns how many there were. A run whose agent works elsewhere continues
// instead, see [runner.Reattaching]. It also deletes the sessions of imports that
// were not completed. Call it at the start, when no other process uses the store: then
// the engines that owned these runs are dead. It does not end external runs. With
// [Options.LeaveRuns], runs that would continue stay as they are.
//
// If the process before this one died while it continued a run, that run fails. If it was
// continuing several runs, Recover leaves all of them, and they are continued one after the
// other when it has returned. See [trial].
func (e *Engine) Recover(ctx context.Context) (int, error) {
	undone := e.undoImports(ctx)
	// An incomplete import can have events that look like a run of this server. No
	// process is killed until all incomplete imports are deleted.
	kill := e.options.KillLeftover != nil && undone == nil
	rec := &recovery{engine: e, kill: kill, reattaches: e.hasReattaching(),
		end: errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)}
	err := rec.findSuspects(ctx)
	if err == nil {
		err = e.eachOpen(ctx, rec.putOnTrial, rec.session)
	}
	if err == nil && len(rec.turns) > 0 && !e.options.LeaveRuns && e.trial.turning.CompareAndSwap(false, true) {
		e.trial.before = nil // another call is not about them
		e.inBackground(rec.inTurn)
	}
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

	mu       sync.Mutex      // turns
	turns    []string        // sessions that are continued in their turn
	suspects map[string]bool // the first of turns: the process before this one may have died of them
}

// findSuspects looks at the sessions that were on trial when the process before this one died.
// The runs of a single one are ended, before anything of them is executed. If there are
// several, all sessions are continued in their turn, these first.
func (r *recovery) findSuspects(ctx context.Context) error {
	e := r.engine
	names, err := e.trial.suspects(ctx)
	if err != nil {
		return err
	}
	var open []tapedeck.Session
	for _, id := range names {
		s, err := e.session(ctx, id)
		switch {
		case absent(err):
		case err != nil:
			return err
		case r.left(&s):
			open = append(open, s)
		}
	}
	switch {
	case len(names) == 0:
		return nil
	case len(open) == 0:
		return e.trial.write(ctx) // an old record must not be found later
	case len(open) == 1:
		return r.failSuspect(ctx, &open[0])
	}
	r.suspects = map[string]bool{}
	for i := range open {
		r.suspects[open[i].ID] = true
		r.turns = append(r.turns, open[i].ID)
	}
	return nil
}

// failSuspect ends the runs of the only session that was on trial when the process before this
// one died.
func (r *recovery) failSuspect(ctx context.Context, s *tapedeck.Session) error {
	e := r.engine
	defer e.answering.lock(s.ID)()
	e.options.Logger.Error("the server died twice in a row while it executed the runs of a session; the runs fail now", "session", s.ID)
	n, err := e.endRunsOf(ctx, &onePage{Log: e.store, session: s.ID}, s, crashLoopEnd, r.kill, func(_ *tapedeck.Session, o tapedeck.OpenRun) bool { return r.abandoned(&o) })
	r.ended.Add(int64(n))
	if err == nil {
		err = e.trial.write(ctx)
	}
	if err == nil {
		e.trial.before = nil
	}
	return err
}

// inTurn continues the runs of the suspects in groups, over trialTime at most, and then those
// of all others. A group is tried until its runs wait for others.
func (r *recovery) inTurn() {
	e, suspects := r.engine, r.turns[:len(r.suspects)]
	defer e.trial.turning.Store(false)
	e.options.Logger.Warn("the server died twice in a row while it executed runs; it continues them one after the other now",
		"sessions", len(r.turns), "suspects", len(suspects))
	size := (len(suspects) + trialGroups - 1) / trialGroups
	groups := slices.Collect(slices.Chunk(suspects, size))
	if others := r.turns[len(suspects):]; len(others) > 0 {
		groups = append(groups, others)
	}
	for _, group := range groups {
		b, err := r.begin(group)
		if err != nil {
			return // the engine is shut down
		}
		for _, id := range group {
			r.continueInTurn(id)
		}
		if !e.trial.await(b, trialTime/time.Duration(len(groups))) {
			return
		}
	}
}

// continueInTurn continues the runs of a session that is on trial.
func (r *recovery) continueInTurn(session string) {
	e := r.engine
	defer e.trial.settle(session)
	s, err := e.session(e.life, session)
	if err == nil {
		err = r.look(e.life, &s, false)
	}
	if err != nil && !absent(err) && e.life.Err() == nil {
		e.options.Logger.Error("the runs of a session could not be continued; the next start does", "session", session, "error", err)
	}
}

// begin puts suspects on trial. While the store is unavailable it tries again.
func (r *recovery) begin(group []string) (b *batch, err error) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		b, err = r.engine.trial.begin(r.engine.life, group)
		if err == nil || !r.engine.sleep(pause) {
			return b, err
		}
	}
}

// putOnTrial puts sessions on trial. It leaves out those without a run that may continue.
func (r *recovery) putOnTrial(ctx context.Context, sessions []tapedeck.Session) error {
	if !r.reattaches || r.holds() {
		return nil
	}
	var names []string
	for i := range sessions {
		if s := &sessions[i]; r.left(s) {
			names = append(names, s.ID)
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := r.engine.trial.begin(ctx, names)
	return err
}

// holds reports whether no run is continued yet.
func (r *recovery) holds() bool {
	return r.engine.options.LeaveRuns || len(r.suspects) > 0 || r.engine.trial.turning.Load()
}

// left reports whether a session has a run that an earlier process left.
func (r *recovery) left(s *tapedeck.Session) bool {
	return slices.ContainsFunc(s.Runs, func(o tapedeck.OpenRun) bool { return r.abandoned(&o) })
}

// session recovers the runs of a session, unless that happens later.
func (r *recovery) session(ctx context.Context, s *tapedeck.Session) error {
	r.engine.leases.learn(s, r.engine.options.Now())
	if r.suspects[s.ID] {
		return nil
	}
	defer r.engine.trial.settle(s.ID)
	return r.look(ctx, s, r.holds())
}

// look continues or ends the runs of a session. With hold it continues none. It reads the
// session once, as long as nothing is appended, because there may be ten thousand of them.
func (r *recovery) look(ctx context.Context, s *tapedeck.Session, hold bool) error {
	e := r.engine
	defer e.answering.lock(s.ID)()
	log := &onePage{Log: e.store, session: s.ID}
	left := map[string]bool{} // invocations
	failed := r.reattach(ctx, log, s, hold, left)
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
// agent left. With hold it only adds the runs to left.
func (r *recovery) reattach(ctx context.Context, log *onePage, s *tapedeck.Session, hold bool, left map[string]bool) (failed error) {
	if !r.reattaches {
		return nil
	}
	e := r.engine
	for _, o := range s.Runs {
		if !r.abandoned(&o) || o.Parent != "" {
			continue
		}
		var err error
		if !hold {
			_, err = e.reattach(ctx, log, s, &o, r.kill)
		} else if goesOn, unread := e.continues(ctx, log, s, &o); goesOn {
			left[o.Invocation] = true
		} else {
			err = unread
		}
		failed = errors.Join(failed, ofRun(s, &o, err))
	}
	if hold && len(left) > 0 {
		r.mu.Lock()
		r.turns = append(r.turns, s.ID)
		r.mu.Unlock()
	}
	return failed
}

// endRuns ends the open runs that choose selects.
func (e *Engine) endRuns(ctx context.Context, end terminal, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (int, error) {
	var n atomic.Int64
	err := e.eachOpen(ctx, nil, func(ctx context.Context, s *tapedeck.Session) error {
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

// eachOpen calls do for each session with an open run, for several at once, and before that
// before, if it is not nil, for up to a thousand of them. An error of one session does not keep
// do from the others, unless the store is unavailable.
func (e *Engine) eachOpen(ctx context.Context, before func(context.Context, []tapedeck.Session) error, do func(context.Context, *tapedeck.Session) error) error {
	var mu sync.Mutex // failed, stop
	failed, stop := error(nil), false
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor, Limit: 1000})
		if err != nil {
			return errors.Join(failed, err)
		}
		if before != nil {
			if err := before(ctx, page.Sessions); err != nil {
				return errors.Join(failed, err)
			}
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
