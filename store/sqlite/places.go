package sqlite

import (
	"container/list"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// The events of all sessions are in one table, in the order in which they became
// durable. So a commit only adds to the end of the table, however many sessions it
// has events of. The table places has the positions of the events of each session.
// An index would change a page for each session in each commit. Instead, the
// positions of the newest events are in memory, and are saved when there are many,
// those of one session together. After a crash they are found by reading the newest
// events; the fact "placed" is the position after which that begins.

const (
	maxPlaces = 256  // most positions in a row of places
	maxFresh  = 8192 // the largest number of events whose positions are only in memory
	window    = 512  // the largest number of events that are looked up at once
)

// A trail has the positions of the newest events of one session.
type trail struct {
	gen     int64
	first   int64   // offset of the first event
	pos     []int64 // positions of the first event and those that follow
	since   int64   // a position below all of pos
	leaving bool    // the current group saves it
	element *list.Element
}

// next returns the offset after the last event.
func (t *trail) next() int64 { return t.first + int64(len(t.pos)) }

// trails holds the trails of all sessions that have one. Only the writer changes
// it; readers use it, too.
type trails struct {
	mu     sync.RWMutex
	of     map[int64]*trail // by gen
	oldest list.List        // of *trail, by since
	size   int              // number of positions in all trails
}

func newTrails() *trails { return &trails{of: make(map[int64]*trail)} }

// add adds the positions of committed events of gen, from offset first on. since is
// a position below all events of their commit.
func (ts *trails) add(gen, first int64, pos []int64, since int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[gen]
	if t == nil {
		t = &trail{gen: gen, first: first, since: since}
		t.element = ts.oldest.PushBack(t)
		ts.of[gen] = t
	}
	t.pos = append(t.pos, pos...)
	ts.size += len(pos)
}

// drop removes trails that were saved and committed.
func (ts *trails) drop(placed []*trail) {
	if len(placed) == 0 {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range placed {
		delete(ts.of, t.gen)
		ts.oldest.Remove(t.element)
		ts.size -= len(t.pos)
	}
}

// tail returns the positions in memory of the events of gen with offsets in
// [from, to), and the offset of the first of them: to if there is none.
func (ts *trails) tail(gen, from, to int64) (first int64, pos []int64) {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	t := ts.of[gen]
	if t == nil {
		return to, nil
	}
	first, end := max(from, t.first), min(to, t.next())
	if first >= end {
		return to, nil
	}
	return first, append(pos, t.pos[first-t.first:end-t.first]...)
}

// locate returns the positions of the events of gen with offsets in [from, to), 0
// for an event that does not exist. It looks into the memory before the database,
// so that it finds positions that are saved meanwhile.
func (ts *trails) locate(c *conn, gen, from, to int64) ([]int64, error) {
	pos := make([]int64, to-from)
	first, fresh := ts.tail(gen, from, to)
	if copy(pos[first-from:], fresh) == len(pos) {
		return pos, nil
	}
	err := findPlaces(c, gen, from, pos)
	if err != nil || !slices.Contains(pos, 0) {
		return pos, err
	}
	// Between a commit and its publication, events are only in the database.
	err = c.query(func(row []driver.Value) error {
		pos[integer(row[0])-from] = integer(row[1])
		return nil
	}, sqlFreshOf, gen, from, to)
	if err != nil {
		return nil, err
	}
	return pos, findPlaces(c, gen, from, pos) // again, for positions that were saved meanwhile
}

const (
	sqlPlaces = `SELECT first, pos FROM places WHERE session = ? AND first > ? AND first < ? ORDER BY first`
	sqlPlace  = `INSERT INTO places (session, first, next, pos) VALUES (?, ?, ?, ?)
	ON CONFLICT DO UPDATE SET next = excluded.next, pos = excluded.pos` // a row that another program has left there must not stop the writer
	sqlPlacedTo  = `SELECT next FROM places WHERE session = ? ORDER BY first DESC LIMIT 1`
	sqlPlaced    = `SELECT value FROM facts WHERE name = 'placed'`
	sqlSetPlaced = `UPDATE facts SET value = ? WHERE name = 'placed'`
	sqlFresh     = `SELECT pos, session, offset FROM events WHERE pos > ? ORDER BY pos`
	sqlFreshOf   = `SELECT offset, pos FROM events WHERE pos > (` + sqlPlaced + `) AND session = ? AND offset >= ? AND offset < ?`
)

// findPlaces fills in the saved positions of the events from offset from on.
func findPlaces(c *conn, gen, from int64, pos []int64) error {
	return c.query(func(row []driver.Value) error {
		found, err := decodePlaces(row[1])
		for i, p := range found {
			if at := integer(row[0]) + int64(i) - from; at >= 0 && at < int64(len(pos)) {
				pos[at] = p
			}
		}
		return err
	}, sqlPlaces, gen, from-maxPlaces, from+int64(len(pos)))
}

func decodePlaces(v driver.Value) (pos []int64, err error) {
	if err = json.Unmarshal([]byte(text(v)), &pos); err != nil {
		err = tapedeck.Errorf(tapedeck.Internal, "the positions of a session's events cannot be read").WithHint(verifyHint).Because(err)
	}
	return pos, err
}

func encodePlaces(pos []int64) string {
	b, _ := json.Marshal(pos) // never fails for integers
	return string(b)
}

const (
	eventColumns   = `SELECT offset, CAST(event AS BLOB), pos, typeof(event), sum FROM `
	sqlStretch     = eventColumns + `events WHERE pos >= ? AND pos <= ? AND session = ? ORDER BY pos`
	sqlStretchBack = eventColumns + `events WHERE pos <= ? AND pos >= ? AND session = ? ORDER BY pos DESC`
	sqlScattered   = eventColumns + `json_each(?) CROSS JOIN events ON pos = value AND session = ?`
)

// fetch calls row with the events of gen at the given positions, in their order,
// which must be ascending or descending. It skips positions without an event. The
// columns are the offset, the event, its position, the type of its column and its sum,
// which nobody has compared; see [fetchSound].
func fetch(c *conn, gen int64, pos []int64, row func([]driver.Value) error) error {
	isNone := func(pos int64) bool { return pos == 0 }
	if slices.ContainsFunc(pos, isNone) {
		pos = slices.DeleteFunc(slices.Clone(pos), isNone)
	}
	n := int64(len(pos))
	if n == 0 {
		return nil
	}
	first, last := pos[0], pos[n-1]
	switch {
	case last >= first && last-first < 2*n: // few events of other sessions are in between
		return c.query(row, sqlStretch, first, last, gen)
	case first > last && first-last < 2*n:
		return c.query(row, sqlStretchBack, first, last, gen)
	}
	return c.query(row, sqlScattered, encodePlaces(pos), gen)
}

// place saves a trail in the table places. When that is committed, the trail is
// dropped from memory.
func (w *writer) place(t *trail) error {
	if t == nil || t.leaving {
		return nil
	}
	first := t.first
	for pos := range slices.Chunk(t.pos, maxPlaces) {
		next := first + int64(len(pos))
		if err := w.conn.exec(sqlPlace, t.gen, first, next, encodePlaces(pos)); err != nil {
			return err
		}
		first = next
	}
	t.leaving = true
	w.placed = append(w.placed, t)
	return nil
}

// placeOldest saves the oldest trails while too many positions are in memory, and
// saves the position after which a restart must read the events.
func (w *writer) placeOldest() error {
	ts := w.store.trails // without its lock: only the writer changes it
	size, keep := ts.size, w.maxFresh
	since := w.since
	for e := ts.oldest.Front(); e != nil; e = e.Next() {
		t := e.Value.(*trail)
		if size <= keep && !t.leaving {
			since = t.since
			break
		}
		if err := w.place(t); err != nil {
			return err
		}
		size -= len(t.pos)
	}
	if len(w.placed) == 0 {
		return nil
	}
	return w.conn.exec(sqlSetPlaced, since)
}

// findTrails returns the trails of the events whose positions are not saved.
func findTrails(c *conn) (*trails, error) {
	ts := newTrails()
	since, err := c.number(sqlPlaced)
	if err != nil {
		return nil, err
	}
	next := map[int64]int64{} // the offset that comes next, by gen
	err = c.query(func(row []driver.Value) error {
		pos, gen, offset := integer(row[0]), integer(row[1]), integer(row[2])
		at, ok := next[gen]
		if !ok {
			at = offset // no position of the session is saved
			err := c.query(func(row []driver.Value) error {
				at = integer(row[0])
				return nil
			}, sqlPlacedTo, gen)
			if err != nil {
				return err
			}
		}
		next[gen] = at
		if offset == at { // otherwise it is saved, or another program has changed the file, which reads will report
			ts.add(gen, offset, []int64{pos}, since)
			next[gen] = at + 1
		}
		return nil
	}, sqlFresh, since)
	return ts, err
}
