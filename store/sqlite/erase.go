package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
	"github.com/tapedeck/tapedeck/store"
)

// Erase implements [tapedeck.Log]. It returns when the database file is clean, see
// [Store.clean]. After the commit, cancelling ctx has no effect. A cleaning that
// fails is repeated later, see [remains].
func (s *Store) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Erased{}, err
	}
	if err := store.CheckErasure(&e); err != nil {
		return tapedeck.Erased{}, err
	}
	now := s.options.Now()
	events, drafts, err := tapedeck.Drafts(e.Events, nil, now)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	e.Events = events
	t := &erasing{Erasure: e, may: tapedeck.Condition(ctx), drafts: drafts, now: now}
	// With [group.BigSize] it has a transaction of its own.
	if err := s.writer.submit(ctx, t, group.BigSize); err != nil {
		s.remains.done(t)
		return tapedeck.Erased{}, err
	}
	if err := s.finishErasure(context.WithoutCancel(ctx), t); err != nil {
		return tapedeck.Erased{}, tapedeck.Errorf(tapedeck.Unavailable, "the events are erased, but copies of them may still be in the files of the data folder").
			WithHint("the server removes them as soon as it can, also when it starts again, and logs it").Because(err)
	}
	return tapedeck.Erased{Appended: t.done, Forks: t.forks}, nil
}

// An erasing is the task of an erasure.
type erasing struct {
	tapedeck.Erasure
	may    func(*tapedeck.Session) error // see [tapedeck.OnlyIf]
	drafts []tapedeck.Draft
	now    time.Time
	done   tapedeck.Appended
	forks  []string
	number int64 // number of the erasure, see sqlCountErasure; 0 before
}

func (t *erasing) do(w *writer) error {
	st, err := w.use(t.Session, t.may)
	if err != nil {
		return err
	}
	if err := store.DecideErasure(&t.Erasure, &st.Session); err != nil {
		return err
	}
	if t.Check != nil {
		s := st.Session // a copy, which Check may change
		if err := t.Check(&s); err != nil {
			return err
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	t.forks = t.forks[:0]
	for _, r := range t.Ranges {
		if err := w.blank(st, r); err != nil {
			return &dbError{err} // any error: half an erasure must not be committed
		}
		if err := t.findForks(w, st, r); err != nil {
			return err
		}
	}
	if store.ErasesAll(&t.Erasure, &st.Session) {
		if err := w.conn.exec(sqlDropPushConfigs, st.Gen); err != nil {
			return err
		}
	}
	return t.append(w, st)
}

// append appends the receipt.
func (t *erasing) append(w *writer, st *state) error {
	w.mark(st)
	st.notify, st.renewed, st.erased = true, st.TTL > 0, true
	first := st.Head
	if err := w.extend(st, t.drafts, t.Events, t.now); err != nil {
		return err
	}
	t.done = tapedeck.Appended{First: first, Next: st.Head, Head: st.Head, Closed: st.Closed}
	if err := w.conn.exec(sqlCountErasure); err != nil {
		return err
	}
	number, err := w.conn.number(sqlErased)
	t.number = number
	w.store.remains.owe(t, debt{number: number})
	return err
}

const (
	sqlReplace       = `UPDATE events SET event = CAST(? AS TEXT), sum = ? WHERE pos = ?`
	sqlReplaceSealed = `UPDATE events SET event = ?, sum = ? WHERE pos = ?`
	sqlSharers       = `SELECT DISTINCT s.id FROM lineage l JOIN sessions s ON s.gen = l.session
	WHERE l.ancestor = ? AND l.from_offset < ? AND l.to_offset > ? AND s.deleted IS NULL ORDER BY s.gen`
)

// blank removes the payloads of a range of the records that st holds itself.
func (w *writer) blank(st *state, r tapedeck.OffsetRange) error {
	for from := r.From; from < r.To; from += window {
		to := min(r.To, from+window)
		pos, err := w.store.trails.locate(w.conn, st.Gen, from, to)
		if err != nil {
			return err
		}
		var found []tapedeck.Record
		var sums []driver.Value
		err = fetchSound(w.conn, st.Gen, pos, func(row []driver.Value) error {
			r := recordOf(row)
			var err error
			if r.Data, err = decrypted(st.key, row); err != nil {
				return err
			}
			if r.Offset != from+int64(len(found)) {
				return errMissingOffset
			}
			found, sums = append(found, r), append(sums, row[4])
			return nil
		})
		if err == nil && len(found) != len(pos) {
			err = errMissingOffset
		}
		switch {
		case errors.Is(err, errSum), errors.Is(err, errSealed), errors.Is(err, errMissingOffset):
			return w.store.damages.Note(w.store.options.Logger, &st.Session, from+int64(len(found)), err)
		case err != nil:
			return err
		}
		for i, rec := range found {
			b, err := store.EraseRecord(rec)
			if err != nil {
				return err
			}
			if bytes.Equal(b.Data, rec.Data) {
				continue
			}
			b, replace := st.stored(b), sqlReplace
			if st.key != nil {
				replace = sqlReplaceSealed
			}
			if sum, ok := sums[i].(int64); ok { // an event without a sum gets none
				sums[i] = int64(store.Sum(sum).SumErased(st.Gen, b))
			}
			if err := w.conn.exec(replace, b.Data, sums[i], pos[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// findForks adds the sessions that share a range with st to t.forks.
func (t *erasing) findForks(w *writer, st *state, r tapedeck.OffsetRange) error {
	return w.conn.query(func(row []driver.Value) error {
		id := text(row[0])
		if !slices.Contains(t.forks, id) { // a fork may share several ranges
			t.forks = append(t.forks, id)
		}
		return nil
	}, sqlSharers, st.Gen, r.To, r.From)
}
