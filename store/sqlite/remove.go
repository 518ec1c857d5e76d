package sqlite

import (
	"context"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// Delete implements [tapedeck.Catalogue].
func (s *Store) Delete(ctx context.Context, session string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writer.submit(ctx, &deletion{session, tapedeck.Condition(ctx)}, rowSize)
}

// A deletion is the task of a delete.
type deletion struct {
	session string
	may     func(*tapedeck.Session) error // see [tapedeck.OnlyIf]
}

func (t *deletion) do(w *writer) error {
	st, err := w.use(t.session, t.may)
	if err != nil {
		return err
	}
	return w.remove(st)
}

// find returns a session, nil if there is none. It deletes the session first if
// that has expired.
func (w *writer) find(id string) (*state, error) {
	st := w.cache.get(id)
	if st == nil {
		v, streamSeq, err := load(w.conn, w.store.keyring(), id)
		if err != nil || v == nil {
			return nil, err
		}
		st = &state{view: *v, streamSeq: streamSeq, written: *v, writtenSeq: streamSeq}
		w.cache.add(st)
	}
	if st.gone || !w.store.deadlines.expire(&st.view, w.now) {
		return st, nil
	}
	w.expired = append(w.expired, st.Gen)
	if err := w.remove(st); err != nil {
		return nil, err
	}
	return w.cache.get(id), nil
}

// findAfterReaping finds a session as find does. If the session was deleted and has
// forks, it first deletes expired sessions, because these may be the forks.
func (w *writer) findAfterReaping(id string) (*state, error) {
	st, err := w.find(id)
	for more := true; err == nil && more && st != nil && st.gone && w.now >= w.due; {
		t := new(reap)
		if err = t.do(w); err == nil {
			more = t.more
			st, err = w.find(id)
		}
	}
	return st, err
}

// use returns a session that can be used; a deleted one is an error.
func (w *writer) use(id string, may func(*tapedeck.Session) error) (*state, error) {
	st, err := w.findAfterReaping(id)
	switch {
	case err != nil:
		return nil, err
	case st == nil:
		return nil, errNotFound(id)
	case st.gone:
		return nil, errGone(id)
	}
	return st, may(&st.Session)
}

const (
	sqlHide           = `UPDATE sessions SET deleted = ?, deadline = NULL WHERE gen = ?`
	sqlDeleteSession  = `DELETE FROM sessions WHERE gen = ?`
	sqlDeleteHead     = `DELETE FROM heads WHERE session = ?`
	sqlDeleteLineage  = `DELETE FROM lineage WHERE session = ?`
	sqlPurge          = `INSERT INTO purges (session, key) VALUES (?, ?)`
	sqlPurges         = `SELECT session, key FROM purges`
	sqlPurged         = `DELETE FROM purges WHERE session = ?`
	sqlPurgeEvents    = `DELETE FROM events WHERE session = ?1 AND pos IN (SELECT value FROM json_each((SELECT pos FROM places WHERE session = ?1 ORDER BY first LIMIT 1)))`
	sqlPurgePlaces    = `DELETE FROM places WHERE rowid = (SELECT rowid FROM places WHERE session = ? ORDER BY first LIMIT 1)`
	sqlPurgeProducers = `DELETE FROM producers WHERE session = ?1 AND id IN (SELECT id FROM producers WHERE session = ?1 LIMIT ?2)`
	sqlHasEvents      = `SELECT EXISTS (SELECT 1 FROM places WHERE session = ?1) OR EXISTS (SELECT 1 FROM producers WHERE session = ?1)`
	sqlHighWater      = `UPDATE facts SET value = ? WHERE name = 'pos'`
)

// remove deletes st, and the deleted ancestors that only st still needed. While st
// has forks, it is only hidden.
func (w *writer) remove(st *state) error {
	if err := w.begin(); err != nil {
		return err
	}
	if !st.gone {
		st.gone, st.notify = true, true
		st.Totals = tapedeck.Totals{} // they have words of its messages
		st.producers, st.records = nil, nil
		w.mark(st)
		for _, statement := range [...]string{sqlDropAcksOfSession, sqlDropPushConfigs} {
			if err := w.conn.exec(statement, st.Gen); err != nil {
				return err
			}
		}
	}
	if st.forks > 0 {
		return w.conn.exec(sqlHide, w.now, st.Gen)
	}
	for st != nil && st.gone && st.forks == 0 {
		if err := w.deleteRows(st); err != nil {
			return err
		}
		if st.Parent == "" {
			return nil
		}
		parent, err := w.find(st.Parent)
		if err != nil {
			return &dbError{err} // any error: half a delete must not be committed
		}
		if parent != nil {
			if err := w.countForks(parent, -1); err != nil {
				return err
			}
		}
		st = parent
	}
	return nil
}

// deleteRows deletes the rows of a session except its events, places and producers:
// these may be many, and are purged in small portions later.
func (w *writer) deleteRows(st *state) error {
	w.mark(st)
	st.removed = true
	w.cache.drop(st)
	for _, statement := range [...]string{sqlDeleteSession, sqlDeleteHead, sqlDeleteLineage} {
		if err := w.conn.exec(statement, st.Gen); err != nil {
			return err
		}
	}
	key := st.ownKey()
	if err := w.conn.exec(sqlPurge, st.Gen, key); err != nil {
		return err
	}
	if key != nil {
		w.dying = append(w.dying, st.keyID)
	}
	w.purges = append(w.purges, st.Gen)
	return nil
}

// Limits of a purge step, which is one transaction.
const (
	purgeRows   = 500 // rows of producers that it removes
	purgePlaces = 2   // rows of places whose events it removes
	purgeEvery  = 8   // under load one step runs after this many groups
)

// A purge removes the events of deleted sessions in small steps.
type purge struct {
	gens   []int64  // the sessions that have rows left
	keys   [][]byte // their keys, which are erased first
	failed bool     // the newest step failed; a successful commit clears it
	groups int      // number of groups since the last step
}

// after is called after every group.
func (p *purge) after(w *writer) {
	if p.groups++; p.groups >= purgeEvery {
		p.step(w)
	}
}

// pending reports whether step has something to do.
func (p *purge) pending() bool { return len(p.gens) > 0 && !p.failed }

// step runs one step. It reports whether another step makes sense now.
func (p *purge) step(w *writer) bool {
	if !p.pending() {
		return false
	}
	p.groups = 0
	if !w.eraseKeys() {
		p.failed = true
		return false
	}
	t := &purging{gen: p.gens[0]}
	switch err := w.write([]*request{{Task: t}}); {
	case err != nil:
		p.failed = true
		w.store.options.Logger.Warn("the events of a deleted session could not be removed yet", "error", err)
	case t.done:
		p.gens = slices.Delete(p.gens, 0, 1)
	}
	return !p.failed
}

// A purging is the task of one purge step.
type purging struct {
	gen  int64
	done bool
}

func (t *purging) do(w *writer) error {
	if err := w.begin(); err != nil {
		return err
	}
	// The step may remove the newest event, and no position may be used twice.
	if err := w.conn.exec(sqlHighWater, w.pos); err != nil {
		return err
	}
	if err := w.place(w.store.trails.of[t.gen]); err != nil {
		return err
	}
	for range purgePlaces {
		if err := errors.Join(w.conn.exec(sqlPurgeEvents, t.gen), w.conn.exec(sqlPurgePlaces, t.gen)); err != nil {
			return err
		}
	}
	if err := w.conn.exec(sqlPurgeProducers, t.gen, int64(purgeRows)); err != nil {
		return err
	}
	left, err := w.conn.number(sqlHasEvents, t.gen)
	if err != nil || left != 0 {
		return err
	}
	t.done = true
	return w.conn.exec(sqlPurged, t.gen)
}
