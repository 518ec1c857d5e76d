package postgres

import (
	"context"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
	"github.com/tapedeck/tapedeck/store"
)

// remains knows the erasures after which observers may still have copies of the erased
// payloads, in views and in the search index.
type remains struct {
	mu      sync.Mutex
	owed    map[*erasing]debt
	through int64 // number of the newest erasure
	late    bool  // a goroutine retries, see [Store.retryErasures]
	unclean bool  // an earlier owner ended before its erasures were clean
}

// A debt says that observers have not removed their copies for an erasure.
type debt struct {
	number int64                       // number of the erasure
	forget func(context.Context) error // notifies the observers again; nil during the first attempt
}

const (
	sqlCountErasure = `UPDATE facts SET value = value + 1 WHERE name = 'erased'`
	sqlErased       = `SELECT value FROM facts WHERE name = 'erased'`
	sqlSetCleaned   = `UPDATE facts SET value = greatest(value, $1) WHERE name = 'cleaned'`
)

func (r *remains) owe(t *erasing, d debt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owed == nil {
		r.owed = map[*erasing]debt{}
	}
	r.owed[t] = d
	r.through = max(r.through, d.number)
}

// done notes that the observers have removed their copies, or that the erasure
// was refused.
func (r *remains) done(t *erasing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owed, t)
}

// cleaned returns the number of the newest erasure up to which observers have removed
// all copies.
func (r *remains) cleaned() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	through := r.through
	for _, d := range r.owed {
		through = min(through, d.number-1)
	}
	return through
}

// overdue returns the debts that can be retried now.
func (r *remains) overdue() map[*erasing]debt {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := maps.Clone(r.owed)
	maps.DeleteFunc(due, func(_ *erasing, d debt) bool { return d.forget == nil })
	return due
}

// finishErasure makes the observers remove their copies of the erased payloads. If that
// fails, it is retried in the background until it succeeds.
func (s *Store) finishErasure(ctx context.Context, t *erasing) error {
	notice := s.observers.Erasure(t.Session, t.forks)
	if err := notice.Deliver(ctx); err != nil {
		s.remains.owe(t, debt{t.number, notice.Deliver})
		s.retryErasures(err)
		return err
	}
	s.remains.done(t)
	_ = s.submit(ctx, cleaned(s.remains.cleaned()), rowSize) // a failure costs the next start its views
	return nil
}

// retryErasures retries in the background until no copies of erased payloads are left.
// The reason is the error of the last attempt.
func (s *Store) retryErasures(reason error) {
	s.remains.mu.Lock()
	defer s.remains.mu.Unlock()
	if s.remains.late || s.closed.Load() {
		return
	}
	s.remains.late = true
	go func() {
		s.options.Logger.Error("copies of erased events could not be removed; trying again", "error", reason)
		if store.Retry(s.running, s.cleanLate) {
			s.options.Logger.Info("no copies of erased events are left")
		}
	}()
}

// cleanLate tries to remove all copies, and reports whether none are left.
func (s *Store) cleanLate() bool {
	for t, d := range s.remains.overdue() {
		if d.forget(s.running) == nil {
			s.remains.done(t)
		}
	}
	err := s.submit(s.running, cleaned(s.remains.cleaned()), rowSize)
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

// resumeErasures finishes the erasures of an earlier owner that ended before they were
// clean. Its views and its search index may contain erased payloads, so both are
// dropped; they can be recreated from the log.
func (s *Store) resumeErasures(ctx context.Context) {
	if !s.remains.unclean {
		return
	}
	drop := func(ctx context.Context) error { return s.writer.submit(ctx, dropViews{}, group.BigSize) }
	if err := drop(ctx); err != nil {
		s.remains.owe(&erasing{}, debt{forget: drop})
		s.retryErasures(err)
	}
}

// A cleaned is the task of noting up to which erasure no copies are left.
type cleaned int64

func (n cleaned) do(w *writer) error {
	w.exec(sqlSetCleaned, int64(n))
	return nil
}

// dropViews is the task of deleting all stored views of sessions and the search index.
type dropViews struct{}

func (dropViews) do(w *writer) error {
	var ids []string
	err := w.query(func(r pgx.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, original(id))
		return err
	}, `SELECT id FROM sessions WHERE kind = $1 AND deleted IS NULL`, string(tapedeck.KindView))
	for _, id := range ids {
		if _, ok := store.ViewOf(id); ok && err == nil {
			err = (&deletion{id, tapedeck.Condition(context.Background())}).do(w)
		}
	}
	for _, statement := range [...]string{`DELETE FROM docs`, `DELETE FROM indexed`, `UPDATE facts SET value = (SELECT value FROM facts WHERE name = 'erased') WHERE name = 'cleaned'`} {
		w.exec(statement)
	}
	return err
}
