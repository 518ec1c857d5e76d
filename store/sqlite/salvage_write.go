package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// write writes what was found into a new store.
func (x *salvage) write(ctx context.Context) (err error) {
	if err := x.beginTimeline(ctx); err != nil {
		return err
	}
	s, err := Open(ctx, x.dir, Options{Key: x.key})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, s.Close()); err != nil { // a part would look like all of it
			removeDatabase(s.file)
		}
	}()
	slices.SortFunc(x.order, func(a, b *salvaged) int { return cmp.Compare(a.gen, b.gen) }) // a parent before its forks
	for _, from := range x.order {
		if from.spec.Kind == tapedeck.KindView {
			continue
		}
		if err := x.writeSession(ctx, s, from); err != nil {
			return fmt.Errorf("session %q: %w", from.spec.ID, err)
		}
	}
	for _, from := range slices.Backward(x.order) { // a fork before its parent
		if from.gone && from.made >= 0 && from.spec.Kind != tapedeck.KindView {
			if err := s.Delete(ctx, from.spec.ID); err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
				return err
			}
		}
	}
	return x.writeWorkflows(ctx, s)
}

// beginTimeline makes the new store, and lets its gens begin above those of the damaged one,
// as a restore does: a session that ends early has another history from then on.
func (x *salvage) beginTimeline(ctx context.Context) error {
	s, err := Open(ctx, x.dir, Options{Key: x.key})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	c, err := dial(dataSource(s.file, "rw", writerPragmas))
	if err != nil {
		return err
	}
	timeline := time.Now().UnixMicro()
	return errors.Join(c.exec(sqlSetNewestGen, timeline),
		c.exec(sqlPutFact, "timeline", timeline), c.close())
}

// writeSession writes a session up to its first event that is missing or damaged.
func (x *salvage) writeSession(ctx context.Context, to *Store, s *salvaged) error {
	next, reason, ok := x.begin(s)
	if !ok {
		s.made = -1
		x.Lost = append(x.Lost, store.SalvageCut{Session: s.spec.ID, Offset: next, Head: s.head, Reason: reason})
		x.Stray += int64(len(s.pos))
		return nil
	}
	spec := s.spec
	spec.Closed = false
	created := false
	put := func(events []tapedeck.Event, chunks [][]byte, last bool) error {
		if !created {
			created = true
			spec.Events, spec.Chunks, spec.Closed = events, chunks, last && s.spec.Closed
			_, err := to.Create(ctx, spec)
			return err
		}
		_, err := to.Append(ctx, tapedeck.Append{Session: spec.ID, Events: events, Chunks: chunks, Close: last && s.spec.Closed})
		return err
	}
	if spec.Parent != "" {
		spec.ForkAt = new(next)
	}
	end := next
	if reason == "" { // otherwise its own events have nothing to follow
		for s.pos[end] != 0 {
			end++
		}
	}
	first := next
	for next < end || !created {
		events, chunks, err := x.load(s, next, min(end, next+window))
		if err != nil {
			return err
		}
		next += int64(len(events) + len(chunks))
		if err := put(events, chunks, next == end); err != nil {
			return err
		}
	}
	x.count(s, first, end, reason)
	return nil
}

// begin returns the offset of the first event that a session holds itself. If reason is not
// "", its parent is cut before that; not ok means that there is no parent at all.
func (x *salvage) begin(s *salvaged) (first int64, reason string, ok bool) {
	if s.spec.Parent == "" {
		if s.unnamed && s.pos[0] == 0 {
			return 0, "its entry cannot be read, and it does not begin at offset 0: it may be a fork", false
		}
		return 0, "", true
	}
	parent := x.byID[s.spec.Parent]
	switch {
	case parent == nil || parent.made < 0:
		return 0, fmt.Sprintf("session %q, from which it was forked, cannot be read", s.spec.Parent), false
	case parent.made < s.forkAt:
		return parent.made, fmt.Sprintf("session %q, from which it was forked, ends there", s.spec.Parent), true
	}
	return s.forkAt, "", true
}

// load reads the events of a range, which were sound a moment ago.
func (x *salvage) load(s *salvaged, from, to int64) (events []tapedeck.Event, chunks [][]byte, err error) {
	size := 0
	for at := from; at < to && size < 4<<20; at++ {
		err := x.conn.query(func(row []driver.Value) error {
			data, _ := row[0].([]byte)
			data, err := s.decrypt(tapedeck.Record{Offset: at, Data: data})
			if err != nil {
				return err
			}
			size += len(data)
			if s.spec.Kind != tapedeck.KindSession {
				chunks = append(chunks, data)
				return nil
			}
			e, err := tapedeck.Record{Offset: at, Data: data}.Event()
			events = append(events, e)
			return err
		}, `SELECT CAST(event AS BLOB) FROM events WHERE pos = ?`, s.pos[at])
		if err != nil {
			return nil, nil, err
		}
	}
	return events, chunks, nil
}

// count adds a session that was written to the report.
func (x *salvage) count(s *salvaged, first, end int64, reason string) {
	s.made = end
	x.Events += end - first
	x.Stray += int64(len(s.pos)) - (end - first)
	if s.gone {
		return // it is only there for its forks
	}
	if x.Sessions++; s.spec.Kind == tapedeck.KindStream {
		x.Sessions--
		x.Streams++
	}
	if s.unnamed {
		x.Nameless++
	}
	switch {
	case reason != "":
	case int64(len(s.pos)) > end-first || s.damaged && s.head != end:
		reason = "the event there is damaged or cannot be read"
	case s.head > end:
		reason = "the events from there on cannot be read"
	case s.unnamed:
		reason = "its entry cannot be read, so it is not known whether it had more"
	default:
		x.Whole++
		return
	}
	x.Cut = append(x.Cut, store.SalvageCut{Session: s.spec.ID, Offset: end, Head: s.head, Reason: reason})
}

// writeWorkflows copies the stored workflows that can be read.
func (x *salvage) writeWorkflows(ctx context.Context, to *Store) error {
	var failed error
	err := x.walk(`SELECT rowid, name, digest, title, added, diagram FROM workflows WHERE rowid > ? ORDER BY rowid`, func(row []driver.Value) {
		diagram, _ := row[5].([]byte)
		w := store.Workflow{Name: text(row[1]), Digest: text(row[2]), Title: text(row[3]), Added: moment(row[4]), Size: int64(len(diagram))}
		if err := to.Workflows().Put(ctx, w, diagram, math.MaxInt32); err != nil {
			failed = errors.Join(failed, err)
			return
		}
		x.Workflows++
	})
	var broken *dbError
	if errors.As(err, &broken) && !isUnreadable(err) {
		err = nil // the database is older than the table
	}
	return errors.Join(err, failed)
}
