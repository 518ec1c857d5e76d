package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/group"
)

// SQLite moves rows between pages when other rows are deleted or become smaller.
// The unused middle of the old page then keeps copies of them, with secure_delete
// too. So after an erasure the middles of all pages are overwritten, some pages at
// a time between groups of appends.
//
// A page of a tree has, in this order, a header, pointers to its cells, the unused
// middle, and the cells.

// cleanPages is how many pages are cleaned in one transaction.
const cleanPages = 2000

// maxCleanPages limits the size of a database that can be cleaned. From this many
// pages on, the first byte of a page that begins with the number of another page
// can look like that of a page of a tree.
const maxCleanPages = 0x02000000

const (
	sqlPage     = `SELECT data FROM sqlite_dbpage WHERE pgno = ?`
	sqlSetPage  = `UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?`
	sqlPageSize = `PRAGMA page_size`
	sqlPages    = `PRAGMA page_count`

	// The fact "erased" counts the erasures. The files have no copies of those up
	// to the number "cleaned".
	sqlCountErasure = `INSERT INTO facts VALUES ('erased', 1) ON CONFLICT DO UPDATE SET value = value + 1`
	sqlErased       = `SELECT value FROM facts WHERE name = 'erased'`
	sqlSetCleaned   = `INSERT INTO facts VALUES ('cleaned', ?) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)`
	sqlCleaned      = `SELECT coalesce((SELECT value FROM facts WHERE name = 'cleaned'), 0)`
	sqlUnclean      = `SELECT coalesce((` + sqlErased + `), 0) - coalesce((SELECT value FROM facts WHERE name = 'cleaned'), 0)`
)

// clean removes the copies that erasures left in the files. It does nothing if the
// erasure with the given number is clean already, because another cleaning was
// faster; with 0 it always cleans. One cleaning runs at a time.
func (s *Store) clean(ctx context.Context, number int64) error {
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	if s.skipCleaning {
		return errClosed()
	}
	var cleaned, through int64
	err := s.readers.use(ctx, func(c *conn) (err error) {
		if cleaned, err = c.number(sqlCleaned); err == nil {
			through, err = s.remains.cleanable(c) // read first: later erasures leave more
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
		// [group.BigSize] gives it the writer for itself. It needs that, because it opens
		// a transaction on another connection.
		if err := s.writer.submit(ctx, t, group.BigSize); err != nil {
			return err
		}
	}
	return nil
}

// purgeAll removes the events of all deleted sessions now, because some of them may
// be views of erased events. Otherwise the writer purges when it has time.
func (s *Store) purgeAll(ctx context.Context) error {
	var gens []int64
	err := s.readers.use(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			gens = append(gens, integer(row[0]))
			return nil
		}, sqlPurges)
	})
	for t := (&clearance{gens: gens}); err == nil && len(t.gens) > 0; {
		if err = s.writer.submit(ctx, t, group.BigSize); err == nil {
			t.gens = t.left
		}
	}
	return err
}

// purgesAtOnce is how many purge steps one transaction has when an erasure waits
// for them.
const purgesAtOnce = 16

// A clearance is the task of removing some of the rows of deleted sessions.
type clearance struct {
	gens []int64
	left []int64 // those of gens with rows left, after an attempt
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
	through int64 // erasures up to this number are clean when the task is done
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

// cleanPage overwrites the unused middle of a page, unless it is clean already.
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

// middle returns where the unused middle of a page begins and ends. It is empty
// for a page that does not belong to a tree.
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
