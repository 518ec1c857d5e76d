package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Recover ends the runs that an earlier process has left open, each with one
// terminal event, and returns how many there were. It is called at the start,
// while the store is ours alone: whoever owned them is dead. Runs that are
// written from outside may go on.
func (e *Engine) Recover(ctx context.Context) (int, error) {
	end := errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)
	return e.endRuns(ctx, end, func(_ *tapedeck.Session, r tapedeck.OpenRun) bool { return r.Owner != "" && r.Owner != e.id })
}

// endRuns ends the open runs that are chosen.
func (e *Engine) endRuns(ctx context.Context, end terminal, choose func(*tapedeck.Session, tapedeck.OpenRun) bool) (int, error) {
	n := 0
	for cursor := ""; ; {
		sessions, next, err := e.store.List(ctx, tapedeck.Filter{OpenRun: true, Cursor: cursor})
		if err != nil {
			return n, err
		}
		for i := range sessions {
			for _, r := range sessions[i].Runs {
				if !choose(&sessions[i], r) {
					continue
				}
				done := e.finish(ctx, sessions[i].ID, r.Invocation, end)
				switch {
				case done.err == nil:
					n++
				case errors.Is(done.err, errEnded), tapedeck.KindOf(done.err) == tapedeck.NotFound, tapedeck.KindOf(done.err) == tapedeck.Gone:
				default:
					return n, done.err
				}
			}
		}
		if cursor = next; next == "" {
			return n, nil
		}
	}
}

// sweep ends runs that are written from outside when nothing was heard of their
// sessions for as long as a lease lasts.
func (e *Engine) sweep() {
	tick := time.NewTicker(max(e.options.Lease/4, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-e.closed:
			return
		case <-tick.C:
		}
		if err := e.expireLeases(context.Background()); err != nil {
			e.options.Logger.Warn("runs whose lease has run out could not be ended; trying again", "error", err)
		}
	}
}

func (e *Engine) expireLeases(ctx context.Context) error {
	end := errorEnd(tapedeck.CodeLeaseExpired, "nothing was heard of the agent for "+e.options.Lease.String(), tapedeck.StatusInterrupted)
	_, err := e.endRuns(ctx, end, func(s *tapedeck.Session, r tapedeck.OpenRun) bool {
		return r.Owner == "" && e.options.Now().Sub(s.Updated) > e.options.Lease
	})
	return err
}
