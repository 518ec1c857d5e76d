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

// deadlines knows when sessions with a TTL were touched last. Appends and Touch
// restart a TTL without writing the row of the session. The row is updated when the
// deadline in it has passed, and when the store is closed. After a crash every TTL
// restarts, see [writer.markInUse]. So a session may expire late, but not early.
type deadlines struct {
	// due is a time in milliseconds. No session expires before it.
	due atomic.Int64

	// floor is when the store was opened after a crash: every TTL begins then
	// or later.
	floor atomic.Int64

	mu      sync.RWMutex
	touched map[int64]int64 // by Gen, in milliseconds; dead for one that has expired
}

// dead in touched means that the session has expired for good.
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
	at, expires := v.deadline(touched)
	return touched == dead || expires && now >= at
}

// last returns when v was touched last. It requires d.mu.
func (d *deadlines) last(v *view) int64 {
	touched, ok := d.touched[v.Gen]
	if !ok {
		return max(v.touched, d.floor.Load())
	}
	return touched
}

// touch restarts the TTL of v. It reports false if v has expired.
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

// expire reports whether v has expired. If so, v cannot be touched any more.
func (d *deadlines) expire(v *view, now int64) bool {
	if !d.passed(v, now) { // the usual case, without the write lock
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

// forget drops the entry of a session that was deleted, or whose deletion failed.
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

// reapBatch is how many expired sessions one transaction handles.
const reapBatch = 100

// A reap is the task of deleting some expired sessions.
type reap struct {
	more bool // there may be more of them
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
		st, err := w.find(id) // deletes it if it has expired
		if err == nil && st != nil && !st.gone {
			err = w.postpone(st)
		}
		var broken *dbError
		if errors.As(err, &broken) {
			return err
		} else if err == nil { // a session that cannot be read must not stop the deletion of others
			dealtWith++
		}
	}
	t.more = len(ids) == reapBatch && dealtWith > 0
	w.due, err = w.conn.number(sqlNextDue)
	return err
}

// postpone updates the row of a session that was touched since it was written.
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

// reap deletes all expired sessions. It costs nothing before the first deadline.
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

// reapEvery is how often expired sessions are deleted. They cannot be read before
// that either; they only take space.
const reapEvery = 30 * time.Second

// lookEvery is how often the store checks that its folder was not moved.
const lookEvery = time.Second

// reaper deletes expired sessions and checks the folder until ctx is done.
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
			_ = s.checkPlace() // logs an error and calls OnLost
		case <-tick:
			if err := s.reap(ctx); err != nil && ctx.Err() == nil {
				s.options.Logger.Warn("expired sessions could not be deleted", "error", err)
			}
			if err := s.reclaim(ctx); err != nil && ctx.Err() == nil {
				s.options.Logger.Warn("the space of deleted sessions could not be given back to the disk", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
