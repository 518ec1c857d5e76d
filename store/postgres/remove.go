package postgres

import (
	"context"
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
		if w.deleted[id] || w.absent[id] {
			return nil, nil
		}
		found, err := load(w.ask, id)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		st = w.keep(found[0])
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
	sqlHide           = `UPDATE sessions SET deleted = $1, deadline = NULL WHERE gen = $2`
	sqlDeleteSession  = `DELETE FROM sessions WHERE gen = $1`
	sqlDeleteHead     = `DELETE FROM heads WHERE session = $1`
	sqlDeleteLineage  = `DELETE FROM lineage WHERE session = $1`
	sqlPurge          = `INSERT INTO purges (session) VALUES ($1)`
	sqlPurges         = `SELECT session FROM purges`
	sqlPurged         = `DELETE FROM purges WHERE session = $1`
	sqlPurgeEvents    = `DELETE FROM events WHERE session = $1 AND "offset" < (SELECT min("offset") FROM events WHERE session = $1) + $2::bigint`
	sqlPurgeProducers = `DELETE FROM producers WHERE session = $1 AND id IN (SELECT id FROM producers WHERE session = $1 LIMIT $2)`
	sqlHasEvents      = `SELECT count(*) FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM events WHERE session = $1) OR EXISTS (SELECT 1 FROM producers WHERE session = $1)) x`
)

// remove deletes st, and the deleted ancestors that only st still needed. While st
// has forks, it is only hidden.
func (w *writer) remove(st *state) error {
	if !st.gone {
		st.gone, st.notify = true, true
		st.Totals = tapedeck.Totals{} // they have words of its messages
		st.producers, st.accepted, st.complete, st.records = nil, nil, false, nil
		w.mark(st)
		for _, statement := range [...]string{sqlDropAcksOfSession, sqlDropPushConfigs} {
			w.exec(statement, st.Gen)
		}
	}
	if st.forks > 0 {
		w.exec(sqlHide, w.now, st.Gen)
		return nil
	}
	for st != nil && st.gone && st.forks == 0 {
		w.deleteRows(st)
		if st.Parent == "" {
			return nil
		}
		parent, err := w.find(st.Parent)
		if err != nil {
			return &dbError{err} // any error: half a delete must not be committed
		}
		if parent != nil {
			w.countForks(parent, -1)
		}
		st = parent
	}
	return nil
}

// deleteRows deletes the rows of a session except its events and producers:
// these may be many, and are purged in small portions later.
func (w *writer) deleteRows(st *state) {
	w.mark(st)
	st.removed = true
	w.cache.drop(st)
	w.deleted[st.ID] = true
	for _, statement := range [...]string{sqlDeleteSession, sqlDeleteHead, sqlDeleteLineage, sqlPurge} {
		w.exec(statement, st.Gen)
	}
	w.purges = append(w.purges, st.Gen)
}

// Limits of a purge step, which is one transaction.
const (
	purgeRows  = 500 // rows that it removes
	purgeEvery = 8   // under load one step runs after this many groups
)

// A purge removes the events of deleted sessions in small steps.
type purge struct {
	gens   []int64 // the sessions that have rows left
	failed bool    // the newest step failed; a successful commit clears it
	groups int     // number of groups since the last step
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
	w.exec(sqlPurgeEvents, t.gen, int64(purgeRows))
	w.exec(sqlPurgeProducers, t.gen, int64(purgeRows))
	left, err := w.integer(sqlHasEvents, t.gen)
	if err != nil || left != 0 {
		return err
	}
	t.done = true
	w.exec(sqlPurged, t.gen)
	return nil
}
