package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Verify reads all data and reports problems. It checks the database file itself,
// the checksums and offsets of every session, the records that forks inherit, that every event
// can be read and has the right offset, and that the catalogue agrees with the
// events. It changes nothing, and sees the store as of the call. While it runs, the
// write-ahead log cannot be truncated, so it grows.
//
// Verify calls progress, if not nil, now and then with the number of records read
// and the number of all records. An error means that Verify could not finish, not
// that there are problems.
func (s *Store) Verify(ctx context.Context, progress func(done, total int64)) (store.Report, error) {
	if s.closed.Load() {
		return store.Report{}, errClosed()
	}
	c, err := dial(dataSource(s.file, "ro", readerPragmas))
	if err != nil {
		return store.Report{}, unsound(s.file, err)
	}
	defer func() { _ = c.close() }()
	return verify(ctx, c, s.keyring(), progress)
}

// verify does what [Store.Verify] does, on a connection that is not used for anything else.
func verify(ctx context.Context, c *conn, keys keyring, progress func(done, total int64)) (store.Report, error) {
	c.ctx = ctx
	v := &verifier{conn: c, keys: keys, progress: progress}
	if v.progress == nil {
		v.progress = func(int64, int64) {}
	}
	err := v.survive("the database", v.run())
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return v.Report, err
}

type verifier struct {
	store.Report
	conn     *conn
	keys     keyring
	progress func(done, total int64)
	total    int64
	trails   *trails
	blind    bool // something could not be read
}

// survive makes a problem of an error that says that something cannot be read: this is a
// finding, not a failure, and the rest is to be checked all the same.
func (v *verifier) survive(what string, err error) error {
	if v.conn.ctx.Err() != nil || !isUnreadable(err) {
		return err
	}
	v.blind = true
	v.Problem("%s cannot be read: %v", what, err)
	return nil
}

func (v *verifier) run() (err error) {
	if err := v.conn.exec("BEGIN"); err != nil { // everything below sees one state of the data
		return err
	}
	v.total, err = v.conn.number(`SELECT count(*) FROM events`)
	if err = v.survive("the table of the events", err); err != nil {
		return err
	}
	v.trails, err = findTrails(v.conn)
	if err = v.survive("the newest events", err); err != nil {
		return err
	}
	v.progress(0, v.total)
	if err := v.survive("the database file", v.checkFile()); err != nil {
		return err
	}
	ids, err := v.sessions()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.survive(fmt.Sprintf("session %q", id), v.checkSession(id)); err != nil {
			return err
		}
	}
	v.progress(v.Events, v.total)
	return v.checkRest()
}

// checkFile lets SQLite check its file: every page, row and index.
func (v *verifier) checkFile() error {
	return v.conn.query(func(row []driver.Value) error {
		if found := text(row[0]); found != "ok" {
			v.Problem("the database file is damaged: %s", found)
		}
		return nil
	}, `PRAGMA integrity_check(100)`)
}

func (v *verifier) sessions() ([]string, error) {
	var ids []string
	w := &walk{conn: v.conn, statement: `SELECT gen, id FROM sessions WHERE gen > ? ORDER BY gen`}
	err := w.run(func(row []driver.Value) { ids = append(ids, text(row[1])) })
	for range w.gaps {
		v.blind = true
		v.Problem("some sessions cannot be read: a page of their table is damaged")
	}
	return ids, err
}

func (v *verifier) checkSession(id string) error {
	s, _, err := load(v.conn, v.keys, id)
	var broken *dbError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		v.Problem("session %q: %v", id, err)
		return nil
	case s == nil:
		v.Problem("session %q has no head", id)
		return nil
	}
	switch s.Kind {
	case tapedeck.KindSession:
		v.Sessions++
	case tapedeck.KindStream:
		v.Streams++
	}
	if err := v.checkLineage(s); err != nil {
		return err
	}
	return v.checkRecords(s)
}

// checkLineage checks the records that a session inherits, and the number of its
// forks.
func (v *verifier) checkLineage(s *view) error {
	at := int64(0)
	for _, span := range s.spans {
		if span.from != at || span.to <= span.from {
			v.Problem("session %q inherits offsets %d to %d, but the next inherited offset must be %d", s.ID, span.from, span.to, at)
		}
		at = span.to
		held, err := v.conn.number(`SELECT count(*) FROM sessions s JOIN heads h ON h.session = s.gen
			WHERE s.gen = ? AND s.fork_at <= ? AND h.head >= ?`, span.gen, span.from, span.to)
		if err != nil {
			return err
		}
		if held == 0 {
			v.Problem("session %q inherits offsets %d to %d of a session that does not have them", s.ID, span.from, span.to)
		}
	}
	if at != s.ForkedAt {
		v.Problem("session %q was forked at offset %d, but inherits the events below offset %d", s.ID, s.ForkedAt, at)
	}
	forks, err := v.conn.number(`SELECT count(*) FROM sessions WHERE parent = ?`, s.ID)
	if err != nil {
		return err
	}
	if forks != s.forks {
		v.Problem("session %q has %d forks, but its stored count is %d", s.ID, forks, s.forks)
	}
	if s.gone && forks == 0 {
		v.Problem("session %q was deleted and no fork needs it, but it is still stored", s.ID)
	}
	if s.Parent == "" {
		return nil
	}
	parents, err := v.conn.number(`SELECT count(*) FROM sessions WHERE id = ?`, s.Parent)
	if err == nil && parents == 0 {
		v.Problem("session %q was forked from %q, which is not stored", s.ID, s.Parent)
	}
	return err
}

// checkRest looks for rows that belong to no session.
func (v *verifier) checkRest() error {
	purged, err := v.conn.number(`SELECT count(*) FROM purges p JOIN events e ON e.session = p.session`)
	if err != nil {
		return err
	}
	if n := v.total - purged - v.Events; n != 0 && !v.blind {
		v.Problem("%d events belong to no session", n)
	}
	for _, table := range [...]string{"heads", "lineage", "places"} {
		n, err := v.conn.number(`SELECT count(*) FROM ` + table + ` WHERE session NOT IN (SELECT gen FROM sessions UNION ALL SELECT session FROM purges)`)
		if err != nil {
			return err
		}
		if n != 0 {
			v.Problem("%d rows of the table %s belong to no session", n, table)
		}
	}
	return v.survive("the stored workflows", v.checkDiagrams())
}

func (v *verifier) checkDiagrams() error {
	return v.conn.query(func(row []driver.Value) error {
		w := workflowOf(row)
		diagram, _ := row[5].([]byte)
		if err := w.Check(diagram); err != nil {
			v.Problem("%v", err)
		}
		return nil
	}, `SELECT `+workflowColumns+`, diagram FROM workflows ORDER BY name, number`)
}
