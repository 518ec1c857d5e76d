package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tapedeck/tapedeck"
)

// Recover ends the runs that an earlier process has left open, each with one
// terminal event, and returns how many there were. It deletes what an import has
// made that was not completed. It is called at the start, while the store is ours
// alone: whoever owned them is dead. Runs that are written from outside may go on.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	undone := e.undoImports(ctx)
	// What an import holds may say that it was a run of ours: until all that is
	// half made is gone, nothing is killed.
	kill := e.options.KillLeftover != nil && undone == nil
	end := errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)
	n, err := e.endRuns(ctx, end, kill, func(_ *tapedeck.Session, r tapedeck.OpenRun) bool { return r.Owner != "" && r.Owner != e.id })
	return n, errors.Join(undone, err)
}

// endRuns ends the open runs that are chosen; kill says, with what their agents
// have left running.
func (e *Engine) endRuns(ctx context.Context, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (int, error) {
	n, failed := 0, error(nil)
	for cursor := ""; ; {
		sessions, next, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor})
		if err != nil {
			return n, errors.Join(failed, err)
		}
		for i := range sessions {
			for _, r := range sessions[i].Runs {
				if _, sub := parentRun(sessions[i].Runs, &r); sub || !choose(&sessions[i], r) {
					continue // a sub-agent's ends with the one that started it
				}
				err := e.endRun(ctx, &sessions[i], r, end, kill, choose)
				switch {
				case err == nil:
					n++
				case isOver(err), errors.Is(err, errAlive):
				case tapedeck.KindOf(err) == tapedeck.Unavailable, ctx.Err() != nil:
					return n, errors.Join(failed, err)
				default: // one session that cannot be read must not keep the others running
					failed = errors.Join(failed, fmt.Errorf("run %s in session %s: %w", r.Invocation, sessions[i].ID, err))
				}
			}
		}
		if cursor = next; next == "" {
			return n, failed
		}
	}
}

// errAlive says that a run was heard of after it had been chosen to be ended.
var errAlive = errors.New("the run is alive")

// endRun ends a run that was chosen, if it would be chosen now, too.
func (e *Engine) endRun(ctx context.Context, s *tapedeck.Session, r tapedeck.OpenRun, end terminal, kill bool, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) error {
	e.answering.Lock()
	defer e.answering.Unlock()
	t, err := e.trailOf(ctx, s.ID, withDescendants(s.Runs, r))
	if err != nil {
		return err
	}
	if kill && !s.Closed { // a closed session that was imported may have an open run
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
