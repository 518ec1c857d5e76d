package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/tapedeck/tapedeck"
)

// removeAll removes the documents of sessions, and notes that copies stay in the
// unused parts of the file.
func (x *Index) removeAll(gens []int64) error {
	for _, gen := range gens {
		for _, remove := range []func() error{
			func() error { return x.conn.exec(sqlAddRemains, gen) },
			func() error { return x.drop(gen, 0) },
			func() error { return x.conn.exec(`DELETE FROM sessions WHERE session = ?`, gen) },
		} {
			if err := remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	sqlAddRemains = `INSERT INTO remains SELECT 1 WHERE EXISTS (SELECT 1 FROM docs WHERE session = ?) ON CONFLICT DO NOTHING`
	sqlRemains    = `SELECT count(*) FROM remains`
)

// Forget removes the documents of a session and of all deleted sessions. Copies stay
// in the file until [Index.Clean].
func (x *Index) Forget(ctx context.Context, session string) error {
	v, err := x.store.view(ctx, session)
	if err != nil {
		return err
	}
	var gens []int64
	if v != nil {
		gens = []int64{v.Gen}
	}
	err = x.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			gens = append(gens, integer(row[0]))
			return nil
		}, sqlDeletedDocs, int64(-1))
	})
	if err != nil {
		return err
	}
	return x.write(func() error { return x.removeAll(gens) })
}

// Clean rewrites the file if it may have copies of removed documents: like the
// database, it keeps copies of rows that SQLite has moved. The time grows with the
// size of the index. Meanwhile only indexing waits.
func (x *Index) Clean(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.connect(); err != nil {
		return err
	}
	remains, err := x.conn.number(sqlRemains)
	if err == nil && remains > 0 {
		err = x.rewrite()
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the search index could not be cleaned").WithHint("try again").Because(err)
	}
	return nil
}

func (x *Index) rewrite() error {
	if err := x.addWordsAgain(); err != nil {
		return err
	}
	if err := x.conn.exec("VACUUM"); err != nil {
		return err
	}
	err := errRead
	x.store.pauses.during(func() { err = x.conn.emptyLog() }, x.readers.Load())
	if err == nil {
		err = x.conn.exec(`DELETE FROM remains`)
	}
	return err
}

// addWordsAgain makes the full-text index again: in FTS5 a word can survive its documents
// as a separator between two pages.
func (x *Index) addWordsAgain() error {
	err := x.conn.exec("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	if err = x.conn.exec(`INSERT INTO words (words) VALUES ('delete-all')`); err == nil {
		err = x.conn.query(func(row []driver.Value) error {
			return x.conn.exec(`INSERT INTO words (rowid, text) VALUES (?, ?)`, row[0], spaced(text(row[1])))
		}, `SELECT id, text FROM docs`)
	}
	if err == nil {
		err = x.conn.exec("COMMIT")
	}
	if err != nil {
		_ = x.conn.exec("ROLLBACK") // it fails if SQLite has rolled back already
	}
	return err
}
