package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A session with a TTL is touched by appends and by Touch, and neither writes
// its row for that. deadlines holds what the rows do not know. A row is brought
// up to date when the deadline in it has passed, and when the store is closed;
// after a crash every TTL begins anew, see [writer.settleTouches]. So a session may
// expire late, but not early.
type deadlines struct {
	// due is a time before which nothing expires, in milliseconds.
	due atomic.Int64

	// floor is when the store was opened after a crash: every TTL begins then,
	// or later.
	floor atomic.Int64

	mu      sync.RWMutex
	touched map[int64]int64 // by Gen, in milliseconds; dead for one that has expired
}

const dead = math.MinInt64

func newDeadlines() *deadlines { return &deadlines{touched: make(map[int64]int64)} }

// passed reports whether v has expired by now.
func (d *deadlines) passed(v *view, now int64) bool {
	if v.TTL == 0 && v.Expires.IsZero() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.passedLocked(v, now)
}

func (d *deadlines) passedLocked(v *view, now int64) bool {
	touched := d.last(v)
	at, mortal := v.deadline(touched)
	return touched == dead || mortal && now >= at
}

// last returns when v was touched last. Requires d.mu.
func (d *deadlines) last(v *view) int64 {
	touched, ok := d.touched[v.Gen]
	if !ok {
		return max(v.touched, d.floor.Load())
	}
	return touched
}

// touch restarts the TTL of v. It reports false if that comes too late.
func (d *deadlines) touch(v *view, now int64) bool {
	if v.TTL == 0 {
		return !d.passed(v, now)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passedLocked(v, now) {
		return false
	}
	d.touched[v.Gen] = max(now, d.last(v))
	return true
}

// bury reports whether v has expired, and if so once and for all: it cannot be
// touched any more.
func (d *deadlines) bury(v *view, now int64) bool {
	if !d.passed(v, now) { // without the lock for writing, as is usual
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.passedLocked(v, now) {
		return false
	}
	d.touched[v.Gen] = dead
	return true
}

// forget drops what is known of a session: it is no more, or it could not be
// buried after all.
func (d *deadlines) forget(gen int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.touched, gen)
}

// Touch implements [tapedeck.Catalogue]. It costs no commit.
func (s *Store) Touch(ctx context.Context, session string) error {
	v, err := s.lookup(ctx, session)
	if err != nil {
		return err
	}
	if !s.deadlines.touch(v, s.now()) {
		return errNotFound(session)
	}
	return nil
}

// reapBatch is how many expired sessions are looked at in one transaction.
const reapBatch = 100

// A reap is the task of deleting some sessions that have expired.
type reap struct {
	more bool // it is worth while to do it again
}

const (
	sqlExpired  = `SELECT id FROM sessions WHERE deadline <= ? ORDER BY deadline LIMIT ?`
	sqlNextDue  = `SELECT coalesce(min(deadline), 9223372036854775807) FROM sessions WHERE deadline IS NOT NULL`
	sqlDeadline = `UPDATE sessions SET touched = ?, deadline = ? WHERE gen = ?`
)

func (t *reap) do(w *writer) error {
	var ids []string
	err := w.conn.query(func(row []driver.Value) error {
		ids = append(ids, text(row[0]))
		return nil
	}, sqlExpired, w.now, int64(reapBatch))
	if err != nil {
		return err
	}
	dealtWith := 0
	for _, id := range ids {
		st, err := w.find(id) // which deletes it if it has expired
		if err == nil && st != nil && !st.gone {
			err = w.postpone(st)
		}
		var broken *dbError
		if errors.As(err, &broken) {
			return err
		} else if err == nil { // else it cannot be read, and must not keep others from being deleted
			dealtWith++
		}
	}
	t.more = len(ids) == reapBatch && dealtWith > 0
	w.due, err = w.conn.number(sqlNextDue)
	return err
}

// postpone brings the row of a session up to date that was touched since.
func (w *writer) postpone(st *state) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.mark(st)
	d := w.store.deadlines
	d.mu.RLock()
	st.touched = d.last(&st.view)
	d.mu.RUnlock()
	at, _ := st.deadline(st.touched)
	return w.conn.exec(sqlDeadline, st.touched, at, st.Gen)
}

// reap deletes all that has expired, if anything can have.
func (s *Store) reap(ctx context.Context) error {
	for s.now() >= s.deadlines.due.Load() {
		t := new(reap)
		if err := s.writer.submit(ctx, t, reapBatch*rowSize); err != nil {
			return err
		}
		if !t.more {
			return nil
		}
	}
	return nil
}

// reapEvery is how often what has expired is deleted, if nobody asks for it
// before: it cannot be seen any more, it only takes room.
const reapEvery = 30 * time.Second

// lookEvery is how often the store looks whether its folder is still in its place.
const lookEvery = time.Second

// reaper deletes what has expired, and looks after the folder, until ctx is done.
func (s *Store) reaper(ctx context.Context) {
	defer close(s.reaped)
	tick := s.options.ReapTick
	if tick == nil {
		ticker := time.NewTicker(reapEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			_ = s.checkPlace() // it logs, and tells the owner
		case <-tick:
			if err := s.reap(ctx); err != nil && ctx.Err() == nil {
				s.options.Logger.Warn("expired sessions could not be deleted", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
