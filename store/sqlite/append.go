package sqlite

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Append implements [tapedeck.Log].
func (s *Store) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Appended{}, err
	}
	if err := store.CheckAppend(&a); err != nil {
		return tapedeck.Appended{}, err
	}
	now := s.options.Now()
	events, drafts, err := tapedeck.Drafts(a.Events, a.Chunks, now)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	size, err := sizeOf(drafts)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	a.Events = events
	t := &appending{Append: a, may: tapedeck.Condition(ctx), drafts: drafts, now: now}
	if err := s.writer.submit(ctx, t, size); err != nil {
		return tapedeck.Appended{}, err // not t.done: the writer may still be changing it
	}
	return t.done, nil
}

// Limits in bytes. The database could store a little more, but an append is in
// memory as a whole.
const (
	maxRecord = 256 << 20 // of one record
	maxAppend = 1 << 30   // of all records of one append
)

// sizeOf returns the size of drafts in bytes.
func sizeOf(drafts []tapedeck.Draft) (int, error) {
	size := 0
	for _, d := range drafts {
		if d.Len() > maxRecord {
			return 0, tapedeck.Errorf(tapedeck.TooLarge, "a record has %d bytes; at most %d are allowed", d.Len(), maxRecord)
		}
		size += d.Len() + 64 // 64 for each, so that many tiny records count, too
	}
	if size > maxAppend {
		return 0, tapedeck.Errorf(tapedeck.TooLarge, "an append of %d bytes is too large; at most %d are allowed", size, maxAppend).
			WithHint("append them in several parts")
	}
	return size, nil
}

// An appending is the task of an append.
type appending struct {
	tapedeck.Append
	may    func(*tapedeck.Session) error // see [tapedeck.OnlyIf]
	drafts []tapedeck.Draft
	now    time.Time
	done   tapedeck.Appended
}

func (t *appending) do(w *writer) error {
	st, err := w.use(t.Session, t.may)
	if err != nil {
		return err
	}
	last, err := w.recall(st, t.Producer)
	if err != nil {
		return err
	}
	if t.done, err = store.DecideAppend(&t.Append, &st.Session, st.streamSeq, last); t.done.Duplicate || err != nil {
		return err
	}
	if t.Check != nil {
		w.checked = st.Session // a copy, which Check may change
		if err := t.Check(&w.checked); err != nil {
			return err
		}
	}
	return t.write(w, st)
}

// write writes an append that was accepted.
func (t *appending) write(w *writer, st *state) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.mark(st)
	st.notify, st.renewed = true, st.TTL > 0
	first, before := st.Head, st.Spent
	if err := w.extend(st, t.drafts, t.Events, t.now); err != nil {
		return err
	}
	if err := w.charge(store.ChargeOf(&t.Append, before, &st.Session, t.now)); err != nil {
		return err
	}
	if t.Close {
		st.Closed = true
		if t.Producer != nil {
			p := *t.Producer
			st.ClosedBy = &p
		}
	}
	if t.StreamSeq != "" {
		st.streamSeq = t.StreamSeq
	}
	t.done = tapedeck.Appended{First: first, Next: st.Head, Head: st.Head, Closed: st.Closed, Parts: t.Parts}
	p := t.Producer
	if p == nil {
		return nil
	}
	a := store.Accepted(&t.Append, first, st.Head)
	t.done.Seq = a.Seq
	st.remember(p.ID, a)
	return w.conn.exec(sqlAccept, st.Gen, p.ID, a.Epoch, a.Seq, a.First, a.Next)
}

const (
	sqlEvent   = `INSERT INTO events (pos, session, offset, event, sum) VALUES (?, ?, ?, CAST(? AS TEXT), ?)`
	sqlMessage = `INSERT INTO events (pos, session, offset, event, sum) VALUES (?, ?, ?, coalesce(?, x''), ?)` // the driver takes no bytes for null
	sqlAccept  = `INSERT INTO producers (session, id, epoch, seq, first, next) VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, first = excluded.first, next = excluded.next`
	sqlAccepted = `SELECT epoch, seq, first, next FROM producers WHERE session = ? AND id = ?`
)

// extend inserts records and folds events into the session's entry.
func (w *writer) extend(st *state, drafts []tapedeck.Draft, events []tapedeck.Event, now time.Time) error {
	if st.keyID != nil && st.key == nil {
		return errEncrypted(filepath.Dir(w.store.file)) // the store was opened to verify it
	}
	insert := sqlEvent
	if st.Kind != tapedeck.KindSession || st.keyID != nil {
		insert = sqlMessage
	}
	if st.Kind != tapedeck.KindSession {
		if len(drafts) > 0 && now.After(st.Updated) {
			st.Updated = now.UTC().Truncate(time.Millisecond)
		}
	}
	for i := range drafts {
		r := drafts[i].Record(st.Head + int64(i))
		stored := st.stored(r)
		sum := store.SumOf(st.Gen, stored, st.link)
		if err := w.conn.exec(insert, w.pos+1, st.argument(), r.Offset, stored.Data, int64(sum)); err != nil {
			return err
		}
		w.pos++
		st.link = sum.Link()
		st.records, st.pos = append(st.records, r), append(st.pos, w.pos)
	}
	for i := range events {
		e := events[i]
		e.Offset = st.Head + int64(i)
		st.Apply(&e)
	}
	st.Head += int64(len(drafts))
	return nil
}

// stored returns a record as the database has it. Readers near the head get r itself.
func (st *state) stored(r tapedeck.Record) tapedeck.Record {
	if st.key != nil {
		r.Data = st.key.SealEvent(r.Offset, r.Data)
	}
	return r
}

// recall returns the newest append of a producer, nil if there is none.
func (w *writer) recall(st *state, p *tapedeck.Producer) (last *store.ProducerState, err error) {
	if p == nil {
		return nil, nil
	}
	if a, ok := st.producers[p.ID]; ok {
		return &a, nil
	}
	err = w.conn.query(func(row []driver.Value) error {
		last = &store.ProducerState{Epoch: integer(row[0]), Seq: integer(row[1]), First: integer(row[2]), Next: integer(row[3])}
		st.remember(p.ID, *last)
		return nil
	}, sqlAccepted, st.Gen, p.ID)
	return last, err
}
