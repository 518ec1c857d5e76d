package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
)

// Recover ends the runs that an earlier process left open, each with one terminal
// event, and returns how many there were. A run whose agent works elsewhere continues
// instead, see [runner.Reattaching]. It also deletes the sessions of imports that
// were not completed. Call it at the start, when no other process uses the store: then
// the engines that owned these runs are dead. It does not end external runs.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	undone := e.undoImports(ctx)
	// An incomplete import can have events that look like a run of this server. No
	// process is killed until all incomplete imports are deleted.
	kill := e.options.KillLeftover != nil && undone == nil
	end := errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)
	reattached := e.reattachRuns(ctx, kill)
	n, err := e.endRuns(ctx, end, kill, func(_ *tapedeck.Session, r tapedeck.OpenRun) bool {
		return r.Owner != "" && r.Owner != e.id && !e.drives(r.Invocation)
	})
	if undone == nil { // an incomplete import can have inputs that no user of this server has sent
		err = errors.Join(err, e.feedAll(ctx))
	}
	return n, errors.Join(undone, reattached, err)
}

// reattachRuns continues the runs whose agents work elsewhere, and those whose state is
// in the log. With kill it also ends the processes that agents of the latter left.
func (e *Engine) reattachRuns(ctx context.Context, kill bool) (failed error) {
	if !slices.ContainsFunc(slices.Concat(e.options.Agents, e.options.Unlisted), func(a Agent) bool {
		_, ok := a.Runner.(runner.Reattaching)
		return ok || isDurable(&a)
	}) {
		return nil
	}
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor})
		if err != nil {
			return errors.Join(failed, err)
		}
		for i := range page.Sessions {
			s := &page.Sessions[i]
			for _, r := range s.Runs {
				if r.Owner == "" || r.Owner == e.id || r.Parent != "" || e.drives(r.Invocation) {
					continue
				}
				if _, err := e.reattach(ctx, s, &r, kill); err != nil {
					failed = errors.Join(failed, fmt.Errorf("run %s in session %s: %w", r.Invocation, s.ID, err))
				}
			}
		}
		if cursor = page.Next; cursor == "" {
			return failed
		}
	}
}

// endRuns ends the open runs that choose selects. With kill it also ends the
// processes that their agents left running.
func (e *Engine) endRuns(ctx context.Context, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (int, error) {
	n, failed := 0, error(nil)
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor})
		if err != nil {
			return n, errors.Join(failed, err)
		}
		for i := range page.Sessions {
			s := &page.Sessions[i]
			for _, r := range s.Runs {
				if _, sub := parentRun(s.Runs, &r); sub || !choose(s, r) {
					continue // the run of a sub-agent ends with its parent run
				}
				err := e.endRun(ctx, s, r, end, kill, choose)
				switch {
				case err == nil:
					n++
				case isOver(err), errors.Is(err, errAlive):
				case tapedeck.KindOf(err) == tapedeck.Unavailable, ctx.Err() != nil:
					return n, errors.Join(failed, err)
				default: // one unreadable session must not keep the runs of others open
					failed = errors.Join(failed, fmt.Errorf("run %s in session %s: %w", r.Invocation, s.ID, err))
				}
			}
		}
		if cursor = page.Next; cursor == "" {
			return n, failed
		}
	}
}

// errAlive means that an event of a run arrived after the run was chosen.
var errAlive = errors.New("the run is alive")

// endRun ends a chosen run, if it would still be chosen now.
func (e *Engine) endRun(ctx context.Context, s *tapedeck.Session, r tapedeck.OpenRun, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) error {
	e.answering.Lock()
	defer e.answering.Unlock()
	t, err := e.trailOf(ctx, s.ID, withDescendants(s.Runs, r))
	if err != nil {
		return err
	}
	if kill && !s.Closed { // an imported closed session can have an open run
		e.killLeftovers(s.ID, r, &t)
	}
	end.before = t.cancelAnswers()
	return e.finish(ctx, s.ID, r.Invocation, end, func(s *tapedeck.Session, _ []tapedeck.Event) error {
		if !choose(s, r) {
			return errAlive
		}
		return nil
	}).err
}
