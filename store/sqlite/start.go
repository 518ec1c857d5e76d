package sqlite

import "database/sql/driver"

func newWriter(s *Store) *writer {
	return &writer{store: s, queue: newQueue(), cache: newCache(s.options.HotSessions), ended: make(chan struct{}), maxLog: maxLog, maxFresh: maxFresh}
}

const (
	sqlNewestGen = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sessions'`
	sqlNewestPos = `SELECT max(value, (SELECT coalesce(max(pos), 0) FROM events)) FROM facts WHERE name = 'pos'`
	sqlClean     = `SELECT value FROM facts WHERE name = 'clean'`
	sqlSetClean  = `UPDATE facts SET value = ? WHERE name = 'clean'`

	// sqlRenew begins every TTL anew, at a time, and sqlTouched that of one
	// session. The deadline is what view.deadline says.
	sqlRenew = `UPDATE sessions SET touched = ?1,
	deadline = min(coalesce(expires, 9223372036854775807), ?1 + ttl / 1000000 + (ttl % 1000000 > 0)) WHERE ttl > 0 AND deadline IS NOT NULL`
	sqlTouched = sqlRenew + ` AND gen = ?2`
)

// start reads what the writer has to know before its first group.
func (w *writer) start() (err error) {
	if err := w.connect(); err != nil {
		return unsound(w.store.file, err)
	}
	switch err := w.settleTouches(); {
	case err != nil && !isDiskFault(err):
		return unsound(w.store.file, err)
	case err != nil: // it can be read
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
		return nil
	}, sqlPurges)
	if err != nil {
		return unsound(w.store.file, err)
	}
	return nil
}

// settleTouches notes that the folder is in use. If it was not closed in good
// order, touches have been forgotten: then every TTL begins anew. If the disk
// does not take it, the first transaction that succeeds does it.
func (w *writer) settleTouches() error {
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

// finish writes what is in memory only, after the last group. That a full or
// broken disk does not take it is no failure of what was asked before: nothing that
// was acknowledged is lost, and the next start does what it does after a crash.
func (w *writer) finish() error {
	w.turn.Lock()
	defer w.turn.Unlock()
	err := w.write([]*request{{task: ending{}}})
	switch {
	case err == nil:
		return nil
	case isDiskFault(err):
		w.store.options.Logger.Warn("the folder could not be closed in good order; every TTL begins anew at the next start", "error", err)
		return nil
	}
	return unwritten(err)
}

// An ending is the task of writing when sessions were touched, and where the
// newest events are.
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
