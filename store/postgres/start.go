package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const (
	sqlFacts    = `SELECT name, value FROM facts`
	sqlSetClean = `UPDATE facts SET value = $1 WHERE name = 'clean'`

	// sqlRestart restarts every TTL at a time, and sqlTouched those of some sessions.
	// They compute the deadline as view.deadline does.
	sqlRestart = `UPDATE sessions SET touched = $1,
	deadline = least(coalesce(expires, 9223372036854775807), $1 + ttl / 1000000 + CASE WHEN ttl % 1000000 > 0 THEN 1 ELSE 0 END)
	WHERE ttl > 0 AND deadline IS NOT NULL`
	sqlTouched = `UPDATE sessions s SET touched = u.touched,
	deadline = least(coalesce(s.expires, 9223372036854775807), u.touched + s.ttl / 1000000 + CASE WHEN s.ttl % 1000000 > 0 THEN 1 ELSE 0 END)
	FROM unnest($1::bigint[], $2::bigint[]) AS u (gen, touched)
	WHERE s.gen = u.gen AND s.ttl > 0 AND s.deadline IS NOT NULL`
)

// connect opens the connection again after a failure, in a new epoch. If the outcome of
// the newest commit is not known, it finds it out, and publishes or drops the commit.
func (w *writer) connect() error {
	s := w.store
	if lost := s.lost.Load(); lost != nil {
		return *lost
	}
	if w.conn != nil && !w.conn.IsClosed() && !w.unsure {
		return nil
	}
	w.hangUp()
	ctx, cancel := s.limited(context.Background())
	defer cancel()
	c, err := s.target.connect(ctx, role(s.lease.name))
	if err != nil {
		return err
	}
	var commits int64
	if w.connected { // otherwise take has begun an epoch
		commits, err = s.lease.next(ctx, c)
	}
	if err != nil {
		_ = c.Close(ctx)
		if errors.Is(err, errTaken) {
			s.lose()
		}
		return err
	}
	w.conn, w.connected, w.open = c, true, false
	switch w.took = commits == w.number; {
	case !w.unsure:
	case w.took:
		w.publish()
	default:
		w.abort()
	}
	return nil
}

// start reads the state that the writer needs before its first group.
func (w *writer) start() error {
	s := w.store
	if err := w.connect(); err != nil {
		return err
	}
	facts := map[string]int64{}
	err := w.ask(func(r pgx.Rows) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		facts[name] = value
		return err
	}, sqlFacts)
	if err != nil {
		return err
	}
	w.gen, w.storedGen, s.lastGen = facts["gen"], facts["gen"], facts["gen"]
	s.remains.unclean, s.remains.through = facts["erased"] > facts["cleaned"], facts["erased"]
	if err := w.write([]*request{{Task: beginning{clean: facts["clean"] != 0}}}); err != nil {
		return s.refusal(err)
	}
	due, err := w.integer(sqlNextDue)
	if err != nil {
		return err
	}
	s.deadlines.due.Store(due)
	return w.ask(func(r pgx.Rows) error {
		var gen int64
		err := r.Scan(&gen)
		w.purge.gens = append(w.purge.gens, gen)
		return err
	}, sqlPurges)
}

// A beginning is the first task of a store. A touch is a use of a session that restarts
// its TTL. If the last owner did not close the store cleanly, touches are lost, and
// every TTL restarts.
type beginning struct{ clean bool }

func (t beginning) do(w *writer) error {
	if !t.clean {
		w.store.deadlines.floor.Store(w.now + 1)
		w.exec(sqlRestart, w.now+1)
	}
	w.exec(sqlSetClean, int64(0))
	return nil
}

// finish writes the state that is only in memory, after the last group. If the database
// cannot be reached that is no error here: no acknowledged append is lost, and the next
// start does what it does after a crash.
func (w *writer) finish() error {
	if w.store.lost.Load() != nil {
		return nil
	}
	if err := w.write([]*request{{Task: ending{}}}); err != nil {
		w.store.options.Logger.Warn("the store could not be closed cleanly; every TTL restarts at the next start", "error", err)
	}
	return nil
}

// An ending is the last task of a store. It writes when sessions were touched.
type ending struct{}

func (ending) do(w *writer) error {
	d := w.store.deadlines
	d.mu.RLock()
	defer d.mu.RUnlock()
	var gens, times []int64
	for gen, touched := range d.touched {
		if touched != dead {
			gens, times = append(gens, gen), append(times, touched)
		}
	}
	if len(gens) > 0 {
		w.exec(sqlTouched, gens, times)
	}
	w.exec(sqlSetClean, int64(1))
	return nil
}
