package sqlite

import (
	"database/sql/driver"

	"github.com/tapedeck/tapedeck/internal/group"
)

func newWriter(s *Store) *writer {
	return &writer{store: s, queue: group.New[task](), cache: newCache(s.options.HotSessions), ended: make(chan struct{}), maxLog: maxLog, maxFresh: maxFresh}
}

const (
	sqlNewestGen = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sessions'`
	sqlNewestPos = `SELECT max(value, (SELECT coalesce(max(pos), 0) FROM events)) FROM facts WHERE name = 'pos'`
	sqlClean     = `SELECT value FROM facts WHERE name = 'clean'`
	sqlSetClean  = `UPDATE facts SET value = ? WHERE name = 'clean'`

	// sqlRenew restarts every TTL at a time, and sqlTouched that of one session.
	// They compute the deadline as view.deadline does.
	sqlRenew = `UPDATE sessions SET touched = ?1,
	deadline = min(coalesce(expires, 9223372036854775807), ?1 + ttl / 1000000 + (ttl % 1000000 > 0)) WHERE ttl > 0 AND deadline IS NOT NULL`
	sqlTouched = sqlRenew + ` AND gen = ?2`
)

// start reads the state that the writer needs before its first group.
func (w *writer) start() (err error) {
	if err := w.connect(); err != nil {
		return unsound(w.store.file, err)
	}
	if err := checkMark(w.conn, w.store.file); err != nil {
		return err
	}
	if err := w.store.checkKeys(w.conn); err != nil {
		return err
	}
	switch err := w.markInUse(); {
	case err != nil && !isDiskFault(err):
		return unsound(w.store.file, err)
	case err != nil: // the database can still be read
		w.behind = true
		w.log(err)
	}
	if w.gen, err = w.conn.number(sqlNewestGen); err != nil {
		return unsound(w.store.file, err)
	}
	if w.pos, err = w.conn.number(sqlNewestPos); err != nil {
		return unsound(w.store.file, err)
	}
	if w.store.trails, err = findTrails(w.conn); err != nil {
		return unsound(w.store.file, err)
	}
	due, err := w.conn.number(sqlNextDue)
	if err != nil {
		return unsound(w.store.file, err)
	}
	w.store.deadlines.due.Store(due)
	err = w.conn.query(func(row []driver.Value) error {
		w.purge.gens = append(w.purge.gens, integer(row[0]))
		if key := column(row[1]); key != nil {
			w.purge.keys = append(w.purge.keys, key)
		}
		return nil
	}, sqlPurges)
	if err != nil {
		return unsound(w.store.file, err)
	}
	return nil
}

// markInUse notes that the folder is in use. A touch is a use of a session that
// restarts its TTL. If the last process did not close the folder cleanly, touches are
// lost, and every TTL restarts. If the disk cannot take this, the first transaction
// that succeeds does it.
func (w *writer) markInUse() error {
	clean, err := w.conn.number(sqlClean)
	if err != nil {
		return err
	}
	if clean == 0 {
		w.store.deadlines.floor.Store(w.store.now() + 1)
		return w.conn.exec(sqlRenew, w.store.now()+1)
	}
	return w.conn.exec(sqlSetClean, int64(0))
}

// finish writes the state that is only in memory, after the last group. A full or
// broken disk is not an error here: no acknowledged append is lost, and the next
// start does what it does after a crash.
func (w *writer) finish() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	err := w.write([]*request{{Task: ending{}}})
	switch {
	case err == nil:
		return nil
	case isDiskFault(err):
		w.store.options.Logger.Warn("the folder could not be closed cleanly; every TTL restarts at the next start", "error", err)
		return nil
	}
	return unwritten(err)
}

// An ending is the last task of a store. It writes when sessions were touched, and
// the positions of the newest events.
type ending struct{}

func (ending) do(w *writer) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.maxFresh = 0
	d := w.store.deadlines
	d.mu.RLock()
	defer d.mu.RUnlock()
	for gen, touched := range d.touched {
		if touched == dead {
			continue
		}
		if err := w.conn.exec(sqlTouched, touched, gen); err != nil {
			return err
		}
	}
	return w.conn.exec(sqlSetClean, int64(1))
}
