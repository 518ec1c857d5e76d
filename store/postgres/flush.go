package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A batch is what is sent at once. Events, heads and producers are gathered as columns,
// so that each table takes one statement, however many sessions there are.
type batch struct {
	statements []statement

	sessions, offsets, sums []int64 // of events
	events                  [][]byte
	size                    int // bytes of events
}

type statement struct {
	text string
	args []any
}

func (b *batch) add(text string, args ...any) {
	b.statements = append(b.statements, statement{text, args})
}

func (b *batch) empty() bool { return len(b.statements) == 0 && len(b.events) == 0 }

// maxEvents and maxBytes limit one statement: a message of the protocol has less than
// 1 GiB, and the database holds several copies of it.
const (
	maxEvents = 20_000
	maxBytes  = 32 << 20
)

const sqlEvents = `INSERT INTO events (session, "offset", event, sum) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[])`

func (b *batch) addEvent(gen int64, r tapedeck.Record, sum store.Sum) {
	if len(b.events) >= maxEvents || b.size >= maxBytes {
		b.closeEvents()
	}
	data := r.Data
	if data == nil {
		data = []byte{} // nil is null
	}
	b.sessions, b.offsets, b.events = append(b.sessions, gen), append(b.offsets, r.Offset), append(b.events, data)
	b.sums = append(b.sums, int64(sum))
	b.size += len(data)
}

// closeEvents makes a statement of the events. Its columns belong to the statement then.
func (b *batch) closeEvents() {
	if len(b.events) > 0 {
		b.add(sqlEvents, b.sessions, b.offsets, b.events, b.sums)
		b.sessions, b.offsets, b.events, b.sums, b.size = nil, nil, nil, nil, 0
	}
}

// queueTo moves everything to a batch of the driver.
func (b *batch) queueTo(to *pgx.Batch) {
	b.closeEvents()
	for _, s := range b.statements {
		to.Queue(s.text, s.args...)
	}
	b.reset()
}

func (b *batch) reset() {
	clear(b.statements)
	b.statements = b.statements[:0]
	b.sessions, b.offsets, b.events, b.sums, b.size = nil, nil, nil, nil, 0
}

const (
	// sqlHeads divides by zero, and so ends the transaction, if a head is not where this
	// server has left it.
	sqlHeads = `WITH moved AS (
		UPDATE heads h SET head = u.head, updated = u.updated, link = u.link
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS u (session, was, head, updated, link)
		WHERE h.session = u.session AND h.head = u.was RETURNING 1)
	SELECT 1 / CASE WHEN count(*) = $6::bigint THEN 1 ELSE 0 END FROM moved`
	sqlAccept = `INSERT INTO producers (session, id, epoch, seq, first, next)
	SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
	ON CONFLICT (session, id) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, first = excluded.first, next = excluded.next`
	sqlEntry = `UPDATE sessions SET title = $1, owner = $2, agent = $3, labels = $4, status = $5, runs = $6, open_runs = $7,
	resumable = $8, last_jump = $9, copy = $10, closed = $11, closed_by = $12, stream_seq = $13, inputs = $14, waiting = $15,
	active = $16, activity = $17, title_key = $18, budget = $19, spent = $20 WHERE gen = $21`
	sqlTotals = `UPDATE sessions SET totals_at = $1, tokens = $2, cost = $3, duration = $4, failures = $5, totals = $6 WHERE gen = $7`
	sqlSetGen = `UPDATE facts SET value = $1 WHERE name = 'gen'`
)

// flush adds the rows of the sessions that the group has changed.
func (w *writer) flush() error {
	var gens, was, heads, updated, links []int64
	for _, st := range w.marked {
		if st.removed {
			continue
		}
		if st.Head != st.written.Head || !st.Updated.Equal(st.written.Updated) {
			gens, was = append(gens, st.Gen), append(was, st.written.Head)
			heads, updated = append(heads, st.Head), append(updated, st.Updated.UnixMilli())
			links = append(links, int64(st.link))
		}
		if !sameEntry(&st.view, &st.written) || st.streamSeq != st.writtenSeq {
			if err := w.writeEntry(st); err != nil {
				return err
			}
		}
		if !store.SameTotals(&st.Totals, &st.written.Totals) {
			w.writeTotals(st)
		}
		st.written, st.writtenSeq = st.view, st.streamSeq
	}
	if len(gens) > 0 {
		w.exec(sqlHeads, gens, was, heads, updated, links, int64(len(gens)))
	}
	w.flushProducers()
	if w.gen != w.storedGen {
		w.exec(sqlSetGen, w.gen)
	}
	return nil
}

func (w *writer) flushProducers() {
	var ids []string
	var gens, epochs, seqs, first, next []int64
	for _, st := range w.marked {
		for id, a := range st.accepted {
			gens, ids = append(gens, st.Gen), append(ids, stored(id))
			epochs, seqs, first, next = append(epochs, a.Epoch), append(seqs, a.Seq), append(first, a.First), append(next, a.Next)
		}
		clear(st.accepted)
	}
	if len(ids) > 0 {
		w.exec(sqlAccept, gens, ids, epochs, seqs, first, next)
	}
}

func (w *writer) writeEntry(st *state) error {
	labels, err1 := object(st.Labels, st.Labels == nil)
	runs, err2 := object(st.Runs, st.Runs == nil)
	closedBy, err3 := object(st.ClosedBy, st.ClosedBy == nil)
	inputs, err4 := object(st.Inputs, st.Inputs == nil)
	waiting, err5 := object(st.Waiting, st.Waiting == nil)
	budget, err6 := object(st.Budget, st.Budget == nil)
	spent, err7 := object(st.Spent, st.Spent == nil)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return err
	}
	w.exec(sqlEntry, stored(st.Title), stored(st.Owner), stored(st.Agent), labels, string(st.Status), runs, int64(len(st.Runs)),
		st.Resumable, st.LastJump, st.Copy, st.Closed, closedBy, []byte(st.streamSeq), inputs, waiting,
		milliseconds(st.Active), store.PlaceOf(&st.Session, store.SortActivity).Number, store.TitleKey(&st.Session), budget, spent, st.Gen)
	return nil
}
