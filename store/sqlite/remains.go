package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"maps"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
	"github.com/tapedeck/tapedeck/store"
)

// remains knows which erasures may have left copies of the erased payloads: in
// data that observers derived, which they remove, and in the unused parts of the
// files, which the store cleans.
type remains struct {
	mu   sync.Mutex
	owed map[*erasing]debt
	late bool // a goroutine retries, see [Store.retryCleaning]
}

// A debt says that observers have not removed their copies for an erasure.
type debt struct {
	number int64                       // number of the erasure
	forget func(context.Context) error // notifies the observers again; nil during the first attempt
}

func (r *remains) owe(t *erasing, d debt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owed == nil {
		r.owed = map[*erasing]debt{}
	}
	r.owed[t] = d
}

// done notes that the observers have removed their copies, or that the erasure
// was refused.
func (r *remains) done(t *erasing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owed, t)
}

// cleanable returns the number of the newest erasure up to which observers have
// removed all copies. A cleaning that begins now is complete for these erasures.
func (r *remains) cleanable(c *conn) (int64, error) {
	through, err := c.number(sqlErased)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.owed {
		through = min(through, d.number-1)
	}
	return through, err
}

// overdue returns the debts that can be retried now.
func (r *remains) overdue() map[*erasing]debt {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := maps.Clone(r.owed)
	maps.DeleteFunc(due, func(_ *erasing, d debt) bool { return d.forget == nil })
	return due
}

// finishErasure removes all copies of the erased payloads. If that fails, it is
// retried in the background until it succeeds.
func (s *Store) finishErasure(ctx context.Context, t *erasing) error {
	notice := s.observers.Erasure(t.Session, t.forks)
	err := notice.Deliver(ctx)
	if err == nil {
		s.remains.done(t)
	} else {
		s.remains.owe(t, debt{t.number, notice.Deliver})
	}
	if err = errors.Join(err, s.clean(ctx, t.number)); err != nil {
		s.retryCleaning(err)
	}
	return err
}

// retryCleaning retries in the background until no copies of erased payloads are
// left. The reason is the error of the last attempt.
func (s *Store) retryCleaning(reason error) {
	s.remains.mu.Lock()
	defer s.remains.mu.Unlock()
	if s.remains.late || s.running.Err() != nil {
		return
	}
	s.remains.late = true
	go func() {
		s.options.Logger.Error("copies of erased events could not be removed from the files; trying again", "error", reason)
		if !store.Retry(s.running, s.cleanLate) {
			return
		}
		s.options.Logger.Info("no copies of erased events are left in the files")
	}()
}

// cleanLate tries to remove all copies, and reports whether none are left.
func (s *Store) cleanLate() bool {
	for t, d := range s.remains.overdue() {
		if d.forget(s.running) == nil {
			s.remains.done(t)
		}
	}
	err := s.clean(s.running, 0)
	s.remains.mu.Lock()
	defer s.remains.mu.Unlock()
	for _, d := range s.remains.owed {
		if d.forget != nil {
			return false
		}
	}
	s.remains.late = err != nil
	return err == nil
}

// resumeCleaning finishes the erasures of an earlier process that ended before
// they were clean. Its views and its search index may contain erased payloads, so
// both are dropped; they can be recreated from the log.
func (s *Store) resumeCleaning(ctx context.Context) {
	err := s.readers.use(ctx, func(c *conn) (err error) {
		s.unclean, err = c.number(sqlUnclean)
		return err
	})
	if err != nil || s.unclean == 0 {
		return // other reads will report the error
	}
	drop := func(ctx context.Context) error { return s.writer.submit(ctx, dropViews{}, group.BigSize) }
	if err = drop(ctx); err != nil {
		s.remains.owe(&erasing{}, debt{forget: drop})
		s.retryCleaning(err)
		return
	}
	go func() {
		if err := s.clean(s.running, 0); err != nil {
			s.retryCleaning(err)
		}
	}()
}

// dropViews is the task of deleting all stored views of sessions.
type dropViews struct{}

func (dropViews) do(w *writer) error {
	var ids []string
	err := w.conn.query(func(row []driver.Value) error {
		ids = append(ids, text(row[0]))
		return nil
	}, `SELECT id FROM sessions WHERE kind = ? AND deleted IS NULL`, string(tapedeck.KindView))
	for _, id := range ids {
		if _, ok := store.ViewOf(id); ok && err == nil {
			err = (&deletion{id, tapedeck.Condition(context.Background())}).do(w)
		}
	}
	return err
}
