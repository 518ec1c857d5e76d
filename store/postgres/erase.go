package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
	"github.com/tapedeck/tapedeck/store"
)

// Erase implements [tapedeck.Log]. After the commit no query finds the payloads. Copies
// stay in the files of PostgreSQL until it reuses their space, and in its write-ahead log
// and its backups: only the operator can remove those, see docs/postgres.md. After the
// commit, cancelling ctx has no effect.
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
		return tapedeck.Erased{}, tapedeck.Errorf(tapedeck.Unavailable, "the events are erased, but views or the search index may still have copies of them").
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
	number int64 // number of the erasure, see sqlErased; 0 before
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
		w.exec(sqlDropPushConfigs, st.Gen)
	}
	return t.append(w, st)
}

// append appends the receipt.
func (t *erasing) append(w *writer, st *state) error {
	w.mark(st)
	st.notify, st.renewed, st.erased = true, st.TTL > 0, true
	first := st.Head
	w.extend(st, t.drafts, t.Events, t.now)
	t.done = tapedeck.Appended{First: first, Next: st.Head, Head: st.Head, Closed: st.Closed}
	w.exec(sqlCountErasure)
	number, err := w.integer(sqlErased)
	t.number = number
	w.store.remains.owe(t, debt{number: number})
	return err
}

const (
	sqlOriginals = `SELECT "offset", event, sum FROM events WHERE session = $1 AND "offset" >= $2 AND "offset" < $3 ORDER BY "offset"`
	sqlReplace   = `UPDATE events e SET event = u.event, sum = u.sum FROM unnest($2::bigint[], $3::bytea[], $4::bigint[]) AS u ("offset", event, sum)
	WHERE e.session = $1 AND e."offset" = u."offset"`
	sqlSharers = `SELECT s.id FROM sessions s WHERE s.deleted IS NULL AND s.gen IN (
	SELECT session FROM lineage WHERE ancestor = $1 AND from_offset < $2 AND to_offset > $3) ORDER BY s.gen`
)

// eraseStep is how many events are read and replaced at once.
const eraseStep = 512

// blank removes the payloads of a range of the records that st holds itself.
func (w *writer) blank(st *state, r tapedeck.OffsetRange) error {
	for from := r.From; from < r.To; from += eraseStep {
		to := min(r.To, from+eraseStep)
		found := make([]tapedeck.Record, 0, to-from)
		sums := make([]*store.Sum, 0, to-from)
		err := w.ask(func(rows pgx.Rows) error {
			var rec tapedeck.Record
			var sum *store.Sum
			switch err := rows.Scan(&rec.Offset, &rec.Data, &sum); {
			case err != nil:
				return err
			case rec.Offset != from+int64(len(found)):
				return errMissingOffset
			case sum != nil && !sum.Covers(st.Gen, rec):
				return errSum
			}
			found, sums = append(found, rec), append(sums, sum)
			return nil
		}, sqlOriginals, st.Gen, from, to)
		if err == nil && len(found) != int(to-from) {
			err = errMissingOffset
		}
		if err != nil {
			return w.damaged(st, from+int64(len(found)), err)
		}
		var offsets []int64
		var events [][]byte
		var replaced []*store.Sum
		for i, rec := range found {
			b, err := store.EraseRecord(rec)
			if err != nil {
				return err
			}
			if !bytes.Equal(b.Data, rec.Data) {
				if sums[i] != nil { // an event without a sum gets none
					sums[i] = new(sums[i].SumErased(st.Gen, b))
				}
				offsets, events, replaced = append(offsets, b.Offset), append(events, b.Data), append(replaced, sums[i])
			}
		}
		if len(offsets) > 0 {
			w.exec(sqlReplace, st.Gen, offsets, events, replaced)
		}
	}
	return nil
}

// findForks adds the sessions that share a range with st to t.forks.
func (t *erasing) findForks(w *writer, st *state, r tapedeck.OffsetRange) error {
	return w.query(func(rows pgx.Rows) error {
		var id string
		err := rows.Scan(&id)
		if id = original(id); !slices.Contains(t.forks, id) { // a fork may share several ranges
			t.forks = append(t.forks, id)
		}
		return err
	}, sqlSharers, st.Gen, r.To, r.From)
}
