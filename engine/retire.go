package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Retire deletes a session that nobody uses: one that has no open run, no open question and
// no input that waits, that is as it was seen, and of which keeps reports false. It reports
// whether it has.
//
// It closes the session first. That is one append, which the store refuses if anything has
// come meanwhile; afterwards nothing can come any more.
func (e *Engine) Retire(ctx context.Context, seen *tapedeck.Session, keeps func(*tapedeck.Session) bool) (bool, error) {
	defer e.feeder.hold(seen.ID)()
	if len(e.runsOf(seen)) > 0 {
		return false, nil
	}
	used := false
	_, err := e.store.Append(ctx, tapedeck.Append{Session: seen.ID, Close: true, Check: func(s *tapedeck.Session) error {
		if used = s.Gen != seen.Gen || s.Head != seen.Head || keeps(s); used {
			return tapedeck.Errorf(tapedeck.Conflict, "session %s is in use again", s.ID)
		}
		return nil
	}})
	if err != nil && used {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := e.remove(ctx, seen.ID); err != nil {
		return false, err
	}
	e.presence.Clear(seen.ID)
	return true, nil
}
