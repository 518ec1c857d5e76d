package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"

	"github.com/tapedeck/tapedeck"
)

// When SQLite moves rows between pages, because others were deleted or have
// become smaller, it leaves copies of them in the unused middle of the old page,
// with secure_delete too. So after rows have lost their payload the middles of
// all pages are overwritten, some pages at a time between groups of appends.
//
// A page of a tree has, from its beginning, a header, pointers to its cells, the
// unused middle, and the cells.

// cleanPages is how many pages are looked at in one transaction.
const cleanPages = 2000

// maxCleanPages is the size of a database from which on the first byte of a page
// no longer tells a page of a tree from one that begins with the number of
// another page.
const maxCleanPages = 0x02000000

const (
	sqlPage     = `SELECT data FROM sqlite_dbpage WHERE pgno = ?`
	sqlSetPage  = `UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`
	sqlPageSize = `PRAGMA page_size`
	sqlPages    = `PRAGMA page_count`

	// Erasures are counted. Of those up to the number "cleaned" nothing is left in
	// the files.
	sqlCountErasure = `INSERT INTO facts VALUES ('erased', 1) ON CONFLICT DO UPDATE SET value = value + 1`
	sqlErased       = `SELECT value FROM facts WHERE name = 'erased'`
	sqlSetCleaned   = `INSERT INTO facts VALUES ('cleaned', ?) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)`
	sqlCleaned      = `SELECT coalesce((SELECT value FROM facts WHERE name = 'cleaned'), 0)`
	sqlUnclean      = `SELECT coalesce((` + sqlErased + `), 0) - coalesce((SELECT value FROM facts WHERE name = 'cleaned'), 0)`
)

// clean removes what erasures have left behind in the files, all up to a number;
// it may be that another cleaning has done so. One cleans at a time.
func (s *Store) clean(ctx context.Context, number int64) error {
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	if s.skipCleaning {
		return errClosed()
	}
	var cleaned, through int64
	err := s.readers.use(ctx, func(c *conn) (err error) {
		if cleaned, err = c.number(sqlCleaned); err == nil {
			through, err = s.remains.cleanable(c) // before anything is removed: later erasures leave more
		}
		return err
	})
	if err != nil || number > 0 && cleaned >= number {
		return err
	}
	if err := s.purgeAll(ctx); err != nil {
		return err
	}
	t := &cleaning{next: 1, through: through}
	for !t.done {
		// As large as it can be: with a transaction of another connection, it
		// must have the writer to itself.
		if err := s.writer.submit(ctx, t, bigSize); err != nil {
			return err
		}
	}
	return nil
}

// purgeAll removes the events of deleted sessions, which is otherwise done when
// there is time: what was made of erased events may be among them.
func (s *Store) purgeAll(ctx context.Context) error {
	var gens []int64
	err := s.readers.use(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			gens = append(gens, integer(row[0]))
			return nil
		}, sqlPurges)
	})
	for t := (&clearance{gens: gens}); err == nil && len(t.gens) > 0; {
		if err = s.writer.submit(ctx, t, bigSize); err == nil {
			t.gens = t.left
		}
	}
	return err
}

// purgesAtOnce is how many bits of deleted sessions are removed in one
// transaction when an erasure waits for them.
const purgesAtOnce = 16

// A clearance is the task of removing some of what is left of deleted sessions.
type clearance struct {
	gens []int64
	left []int64 // of them, after an attempt
}

func (t *clearance) do(w *writer) error {
	left := t.gens
	for n := 0; n < purgesAtOnce && len(left) > 0; n++ {
		p := &purging{gen: left[0]}
		if err := p.do(w); err != nil {
			return err
		}
		if p.done {
			left = left[1:]
		}
	}
	t.left = left
	return nil
}

// A cleaning is the task of overwriting the unused parts of some pages.
type cleaning struct {
	next    int64 // the page to continue with
	through int64 // the erasures up to this number are clean when it is done
	done    bool
}

func (t *cleaning) do(w *writer) error {
	if err := w.store.checkPlace(); err != nil {
		return err
	}
	c, err := dial(source(w.store.file, "rw", writerPragmas, "0"))
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	pages, err := c.number(sqlPages)
	if err != nil {
		return err
	}
	if pages >= maxCleanPages {
		return tapedeck.Errorf(tapedeck.Unsupported, "the database has too many pages to be cleaned").WithHint("stop the server and run VACUUM on it")
	}
	size, err := c.number(sqlPageSize)
	if err != nil {
		return err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	end := min(t.next+cleanPages, pages+1)
	for n := t.next; n < end; n++ {
		if err := cleanPage(c, n, int(size)); err != nil {
			return err // closing the connection rolls back
		}
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	if t.next = end; t.next <= pages {
		return nil
	}
	if err := w.truncateLog(); err != nil {
		return err
	}
	if err := c.exec(sqlSetCleaned, t.through); err != nil {
		return err
	}
	t.done = true
	return nil
}

// cleanPage overwrites the unused middle of a page, if it has one that is not
// clean.
func cleanPage(c *conn, n int64, size int) error {
	var page []byte
	err := c.query(func(row []driver.Value) error {
		page, _ = row[0].([]byte)
		return nil
	}, sqlPage, n)
	if err != nil {
		return err
	}
	from, to := middle(page, n == 1)
	if len(page) != size || isZero(page[from:to]) {
		return nil
	}
	clear(page[from:to])
	return c.exec(sqlSetPage, page, n)
}

// middle returns where the unused middle of a page begins and ends; it is empty
// for a page that is none of a tree.
func middle(page []byte, first bool) (from, to int) {
	if first {
		from = 100 // after the header of the file
	}
	if len(page) < from+12 {
		return 0, 0
	}
	header := page[from:]
	from += 8
	switch header[0] {
	case 0x02, 0x05: // inner pages: of an index, of a table
		from += 4
	case 0x0a, 0x0d: // leaves
	default:
		return 0, 0
	}
	from += 2 * int(binary.BigEndian.Uint16(header[3:]))
	if to = int(binary.BigEndian.Uint16(header[5:])); to == 0 {
		to = 1 << 16
	}
	if to > len(page) || from > to {
		return 0, 0
	}
	return from, to
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
