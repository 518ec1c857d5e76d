package store

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A TransferTable is a table whose rows a [Transfer] copies as they are. Both stores have
// it, with the same columns.
type TransferTable struct {
	Name    string
	Columns []string // by their names
	Key     string   // the column with the gen of a session; "" if a row belongs to no session
}

// A TransferRow is a row of a [TransferTable], in the order of its columns. A value is nil,
// an int64, a float64, or a string, which is a text or bytes. A flag is 0 or 1.
type TransferRow []any

// A TransferEvent is a record of the session with a gen, which holds it itself.
type TransferEvent struct {
	Gen    int64
	Offset int64
	Data   []byte
	Sum    *Sum // nil: it was written before there were sums
}

// Sound reports whether the event is the one that was written.
func (e *TransferEvent) Sound() bool {
	return e.Sum == nil || e.Sum.Covers(e.Gen, tapedeck.Record{Offset: e.Offset, Data: e.Data})
}

// TransferFacts are the numbers of a store that belong to no session.
type TransferFacts struct {
	Gen     int64 // no session had a gen above this
	Clean   bool  // the newest server has stopped in good order
	Erased  int64 // number of the newest erasure
	Cleaned int64 // the erasures up to this one have left no copies
}

// A TransferMark is what a target notes while it has only a part of the data. No server
// opens a target with a mark.
type TransferMark struct {
	Source      string // the source, for people
	Fingerprint string // of the source, see [Transfer]
	Gen         int64  // the rows of the sessions up to this gen are copied
	EventGen    int64  // the events up to this one are copied: that of the session with this gen,
	EventOffset int64  // at this offset
}

// A TransferSide is a store that a [Transfer] reads. While it is open, no server can use
// the data.
type TransferSide interface {
	// Where names the data for people.
	Where() string

	// Tables returns the tables, by their names.
	Tables(context.Context) ([]TransferTable, error)

	// NextGen returns the gen of the last of the n sessions that follow gen, or the
	// argument if none does.
	NextGen(ctx context.Context, gen int64, n int) (int64, error)

	// Rows returns the rows of the sessions with gens above after and up to last; all rows
	// if the table has no key. It leaves out those of deleted sessions.
	Rows(ctx context.Context, t TransferTable, after, last int64) iter.Seq2[TransferRow, error]

	// CountEvents returns the number of events that Events returns.
	CountEvents(context.Context) (int64, error)

	// Events returns the events after the one of a session at an offset, by gen and offset.
	Events(ctx context.Context, gen, offset int64) iter.Seq2[TransferEvent, error]
}

// A TransferSource is where the data comes from. It stays as it is.
type TransferSource interface {
	TransferSide

	// Facts returns the numbers.
	Facts(context.Context) (TransferFacts, error)

	// Verify checks all data, as `tapedeck verify` does.
	Verify(ctx context.Context, progress func(done, total int64)) (Report, error)

	// Held returns an error if a server can have changed the data since it was opened.
	Held(context.Context) error
}

// A TransferTarget is where the data goes.
type TransferTarget interface {
	TransferSide

	// Mark returns the mark, nil if the store is empty. It is a [tapedeck.Conflict] if the
	// store has data without a mark.
	Mark(context.Context) (*TransferMark, error)

	// Begin stores a mark unless there is one. Otherwise it removes the rows that the mark
	// does not cover: those of sessions above Gen, and those of tables without a key.
	Begin(ctx context.Context, tables []TransferTable, m TransferMark) error

	// PutRows stores rows, and PutEvents events, with a mark that covers them, in one
	// commit. Events come in the order of [TransferSide].
	PutRows(ctx context.Context, t TransferTable, rows []TransferRow, m TransferMark) error
	PutEvents(ctx context.Context, events []TransferEvent, m TransferMark) error

	// End stores the numbers and removes the mark, in one commit. From then on, servers
	// can open the store.
	End(context.Context, TransferFacts) error
}

// The steps of a transfer.
const (
	StepCheck    = "check"    // the source is verified
	StepSessions = "sessions" // the rows of the sessions are copied
	StepEvents   = "events"   // the events are copied
	StepCompare  = "compare"  // the events of both sides are compared
)

// A TransferReport is what a transfer did. With an error it is what it did until then.
type TransferReport struct {
	Sessions int64 // number of sessions, without streams
	Streams  int64 // number of streams
	Events   int64 // number of events that are the same on both sides
	Bytes    int64 // their size
	Rows     int64 // number of rows of the catalogue that are the same on both sides
	Resumed  bool  // an earlier transfer had copied a part
	Begun    bool  // the target has a mark, or is complete
}

// Transfer copies all data of a store to an empty one of another kind. Each gen, id, offset
// and time stays as it is, and a fork stays a reference. At the end it compares each row
// and each event of both sides.
//
// A transfer that ended early, for whatever reason, is continued by the next one, if the
// source has not changed since. To know that, the target keeps a fingerprint of the source:
// a digest of everything but the events, where every change of an event shows, too, because
// it also moves the head of its session.
//
// Transfer calls progress, if not nil, now and then with the step and how much of it is
// done.
func Transfer(ctx context.Context, from TransferSource, to TransferTarget, progress func(step string, done, total int64)) (TransferReport, error) {
	t := &transfer{from: from, to: to, progress: progress}
	if t.progress == nil {
		t.progress = func(string, int64, int64) {}
	}
	err := t.run(ctx)
	return t.TransferReport, err
}

type transfer struct {
	TransferReport
	from     TransferSource
	to       TransferTarget
	progress func(step string, done, total int64)
	tables   []TransferTable
	facts    TransferFacts
	digests  []tableDigest // of the source, one for each table
	mark     TransferMark
}

func (t *transfer) run(ctx context.Context) error {
	for _, step := range [...]func(context.Context) error{t.look, t.check, t.begin, t.copyRows, t.copyEvents, t.copyRest, t.compareRows, t.compareEvents, t.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// look reads what both sides are, and refuses a target that has other data.
func (t *transfer) look(ctx context.Context) (err error) {
	if t.tables, err = t.from.Tables(ctx); err != nil {
		return err
	}
	others, err := t.to.Tables(ctx)
	if err != nil {
		return err
	}
	same := func(a, b TransferTable) bool {
		return a.Name == b.Name && a.Key == b.Key && slices.Equal(a.Columns, b.Columns)
	}
	if !slices.EqualFunc(t.tables, others, same) {
		return tapedeck.Errorf(tapedeck.Internal, "%s and %s have different tables", t.from.Where(), t.to.Where()).
			WithHint("they were changed by another program; nothing was copied")
	}
	if t.facts, err = t.from.Facts(ctx); err != nil {
		return err
	}
	if t.digests, err = digestAll(ctx, t.from, t.tables); err != nil {
		return err
	}
	found, err := t.to.Mark(ctx)
	if err != nil {
		return err
	}
	t.mark = TransferMark{Source: t.from.Where(), Fingerprint: fingerprint(t.tables, t.digests, t.facts)}
	if found == nil {
		return nil
	}
	if found.Fingerprint != t.mark.Fingerprint {
		return tapedeck.Errorf(tapedeck.Conflict, "%s has a part of the sessions of %s, and they are not the sessions that %s has now", t.to.Where(), found.Source, t.from.Where()).
			WithHint("another source was given, or its sessions have changed since; empty the target and migrate again")
	}
	t.mark, t.Resumed = *found, true
	return nil
}

// check refuses a source that is damaged.
func (t *transfer) check(ctx context.Context) error {
	found, err := t.from.Verify(ctx, func(done, total int64) { t.progress(StepCheck, done, total) })
	if err != nil {
		return err
	}
	t.Sessions, t.Streams = found.Sessions, found.Streams
	if len(found.Problems) == 0 {
		return nil
	}
	e := tapedeck.Errorf(tapedeck.Conflict, "the data of %s has problems, so it is not copied: %s", t.from.Where(), found.Problems[0])
	if more := int64(len(found.Problems)-1) + found.More; more > 0 {
		e = tapedeck.Errorf(tapedeck.Conflict, "%w; and %d more", e, more)
	}
	return e.WithHint("`tapedeck verify` lists all problems; keep a copy of the data, and migrate a backup that is sound")
}

func (t *transfer) begin(ctx context.Context) error {
	if err := t.to.Begin(ctx, t.tables, t.mark); err != nil {
		return err
	}
	t.Begun = true
	return nil
}

// end makes the target complete.
func (t *transfer) end(ctx context.Context) error {
	if err := t.from.Held(ctx); err != nil {
		return err
	}
	return t.to.End(ctx, t.facts)
}

// nameOf returns the name of a session for people.
func (t *transfer) nameOf(ctx context.Context, gen int64) string {
	for _, table := range t.tables {
		at := slices.Index(table.Columns, "id")
		if table.Name != sessionsTable || at < 0 {
			continue
		}
		for row, err := range t.from.Rows(ctx, table, gen-1, gen) {
			if id, ok := row[at].(string); ok && err == nil {
				return fmt.Sprintf("session %q", id)
			}
		}
	}
	return fmt.Sprintf("the session number %d", gen)
}

// sessionsTable is the table with a row for each session.
const sessionsTable = "sessions"

// IncompleteTransfer returns the error for data that cannot be served, because a transfer
// has copied only a part of it.
func IncompleteTransfer(where string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s has only a part of the sessions that `tapedeck migrate` copies there", where).
		WithHint("run the same `tapedeck migrate` again; it continues where it stopped")
}

// NotEmpty returns the error for a target that has data of its own.
func NotEmpty(where string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s has sessions or other data already, so nothing is copied there", where).
		WithHint("name an empty one; if an earlier migration has finished, start the server on it")
}

// OlderTransfer returns the error for a target that an older program has begun to fill.
func OlderTransfer(where string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s has a part of the sessions that an older Tapedeck has copied there", where).
		WithHint("finish the migration with that version, or empty the target and migrate again")
}
