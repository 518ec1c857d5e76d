package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

var (
	errMissingOffset = errors.New("an offset is missing")
	errSum           = errors.New("its bytes do not have its checksum")
)

// isCorrupt reports whether PostgreSQL has found that its files are damaged.
func isCorrupt(err error) bool {
	c := code(err)
	return c == codeDamaged || c == codeDamagedIndex
}

// explain returns the error of a read of v that failed at an offset: the session was deleted
// meanwhile, or the event there is missing or damaged.
func (s *Store) explain(ctx context.Context, v *view, offset int64, err error) error {
	missing := errors.Is(err, errMissingOffset)
	if !missing && !errors.Is(err, errSum) && !isCorrupt(err) {
		return err
	}
	if missing {
		now, lookErr := s.lookup(ctx, v.ID)
		switch {
		case lookErr != nil:
			return lookErr
		case now.Gen != v.Gen:
			return errNotFound(v.ID)
		}
	}
	return s.damages.Note(s.options.Logger, &v.Session, offset, err)
}

// damaged returns the error of a task that met a damaged event of st.
func (w *writer) damaged(st *state, offset int64, err error) error {
	if errors.Is(err, errSum) || errors.Is(err, errMissingOffset) {
		return w.store.damages.Note(w.store.options.Logger, &st.Session, offset, err)
	}
	return err
}

const sqlSum = `SELECT event, sum FROM events WHERE session = $1 AND "offset" = $2`

// linkBefore returns what the first event of a fork is chained to. The fork inherits spans
// from parent.
func (w *writer) linkBefore(parent *state, spans []span) (store.Link, error) {
	if len(spans) == 0 {
		return 0, nil
	}
	last := spans[len(spans)-1]
	if last.to == parent.Head && last.gen == parent.Gen {
		return parent.link, nil
	}
	var sum *store.Sum
	missing := true
	rec := tapedeck.Record{Offset: last.to - 1}
	err := w.query(func(r pgx.Rows) error { // the group may have appended it
		missing = false
		return r.Scan(&rec.Data, &sum)
	}, sqlSum, last.gen, rec.Offset)
	switch {
	case err == nil && missing:
		err = errMissingOffset
	case err == nil && sum != nil && !sum.Covers(last.gen, rec):
		err = errSum
	case err == nil && sum != nil:
		return sum.Link(), nil
	}
	return 0, w.damaged(parent, rec.Offset, err)
}
