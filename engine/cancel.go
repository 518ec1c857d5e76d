package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Cancel stops a run and returns when its terminal event is durable. The run's other
// events stay. An empty invocation means the only open run; if there are several, or
// none, it is a [tapedeck.Conflict].
func (e *Engine) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	s, err := e.session(ctx, session)
	if err != nil {
		return api.Cancelled{}, err
	}
	open, err := openRun(&s, invocation)
	if err == nil {
		err = e.canEnd(&s, &open)
	}
	if err != nil {
		return api.Cancelled{}, err
	}
	done, err := e.cancelRun(ctx, &s, open)()
	if err == nil {
		done.Session, done.Status = s.ID, tapedeck.StatusCancelled
	}
	return done, err
}

// cancelRun tells a run to stop. It returns a function that waits for the end of the
// run.
func (e *Engine) cancelRun(ctx context.Context, s *tapedeck.Session, open tapedeck.OpenRun) func() (api.Cancelled, error) {
	return e.stopRun(ctx, s, open, errCancelled)
}

// revertRun is cancelRun for a jump.
func (e *Engine) revertRun(ctx context.Context, s *tapedeck.Session, open tapedeck.OpenRun) func() (api.Cancelled, error) {
	return e.stopRun(ctx, s, open, errReverted)
}

func (e *Engine) stopRun(ctx context.Context, s *tapedeck.Session, open tapedeck.OpenRun, cause error) func() (api.Cancelled, error) {
	r := e.runIn(s, open.Invocation)
	if r == nil {
		return func() (api.Cancelled, error) { return e.cancelForeign(ctx, s, open) }
	}
	r.stop(cause)
	return func() (api.Cancelled, error) {
		select {
		case <-r.done:
			return cancelled(open.Invocation, r.result)
		case <-ctx.Done():
			return api.Cancelled{}, ctx.Err()
		}
	}
}

// canEnd refuses to end the run of a sub-agent that its agent runs: only the end of
// the agent's own run can stop it.
func (e *Engine) canEnd(s *tapedeck.Session, r *tapedeck.OpenRun) error {
	above, ok := parentRun(s.Runs, r)
	if !ok || r.Owner == "" || e.Drives(r.Invocation) {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "%s is the run of a sub-agent that %s has started, and ends with it", r.Invocation, above.Invocation).
		WithHint("cancel %s", above.Invocation)
}

// Drives reports whether this engine drives a run, with an agent of its own.
func (e *Engine) Drives(invocation string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[invocation] != nil
}

// openRun returns the run that a cancel means. If it names none, that is the one with
// which all other open runs end.
func openRun(s *tapedeck.Session, invocation string) (tapedeck.OpenRun, error) {
	var ids []string
	var only tapedeck.OpenRun
	for _, r := range s.Runs {
		if r.Invocation == invocation {
			return r, nil
		}
		if _, sub := parentRun(s.Runs, &r); !sub {
			ids, only = append(ids, r.Invocation), r
		}
	}
	switch {
	case invocation != "":
		return tapedeck.OpenRun{}, tapedeck.Errorf(tapedeck.Conflict, "%s is not running in session %s", invocation, s.ID)
	case len(ids) == 0:
		return tapedeck.OpenRun{}, tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s", s.ID)
	case len(ids) > 1:
		return tapedeck.OpenRun{}, tapedeck.Errorf(tapedeck.Conflict, "%d runs are open in session %s", len(ids), s.ID).
			WithHint("name one of them: %s", strings.Join(ids, ", "))
	}
	return only, nil
}

// cancelForeign ends an external run. The engine cannot stop its agent, but refuses
// its later events.
func (e *Engine) cancelForeign(ctx context.Context, s *tapedeck.Session, open tapedeck.OpenRun) (api.Cancelled, error) {
	defer e.answering.lock(s.ID)()
	t, err := trailOf(ctx, e.store, s.ID, withDescendants(s.Runs, open))
	if err != nil {
		return api.Cancelled{}, err
	}
	end := cancelledEnd(true)
	end.before = t.cancelAnswers()
	return cancelled(open.Invocation, e.finish(ctx, s.ID, open.Invocation, end, nil))
}

func cancelled(invocation string, end ending) (api.Cancelled, error) {
	switch {
	case errors.Is(end.err, errEnded):
		return api.Cancelled{}, tapedeck.Errorf(tapedeck.Conflict, "%s had ended already", invocation)
	case end.err != nil:
		return api.Cancelled{}, end.err
	case end.status != tapedeck.StatusCancelled:
		return api.Cancelled{}, tapedeck.Errorf(tapedeck.Conflict, "%s had ended already: %s", invocation, end.status)
	}
	return api.Cancelled{Invocation: invocation, Offset: end.offset, Resumable: end.resumable}, nil
}
