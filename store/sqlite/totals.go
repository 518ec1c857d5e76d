package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// SaveTotals replaces the totals of sessions, given with their id and Gen, in one commit. It leaves out sessions that
// were deleted meanwhile. Observers are not notified: no event is new.
func (s *Store) SaveTotals(ctx context.Context, of []tapedeck.Session) error {
	size := 0
	for i := range of {
		size += len(of[i].Totals.Row) + rowSize
	}
	return s.submit(ctx, savingTotals(of), size)
}

// A savingTotals is the task of a SaveTotals.
type savingTotals []tapedeck.Session

func (t savingTotals) do(w *writer) error {
	for i := range t {
		st, err := w.find(t[i].ID)
		if err != nil {
			return err
		}
		if st == nil || st.gone || st.Gen != t[i].Gen {
			continue
		}
		if err := w.begin(); err != nil {
			return err
		}
		w.mark(st)
		st.Totals = t[i].Totals
	}
	return nil
}

// writeTotals writes the totals of a session into its row.
func (w *writer) writeTotals(st *state) error {
	t := &st.Totals
	var row, sealed driver.Value
	switch {
	case t.Row == nil:
	case st.key != nil:
		sealed = store.SealTotals(st.key, t.Row)
	default:
		row = string(t.Row)
	}
	return w.conn.exec(sqlTotals, t.At, t.Tokens, t.CostMicros, t.RecordingMS, t.Failures, row, sealed, st.Gen)
}
