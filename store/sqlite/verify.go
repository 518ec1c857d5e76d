package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/tapedeck/tapedeck"
)

// A Report is the result of [Store.Verify].
type Report struct {
	Sessions int64    // number of sessions, without streams
	Streams  int64    // number of streams
	Events   int64    // number of records; a record that forks share counts once
	Bytes    int64    // size of these records
	Problems []string // one sentence each; empty if the data is sound
	More     int64    // number of problems beyond those in Problems
}

// maxProblems limits the problems that are reported one by one.
const maxProblems = 100

// Verify reads all data and reports problems. It checks the database file itself,
// the offsets of every session, the records that forks inherit, that every event
// can be read and has the right offset, and that the catalogue agrees with the
// events. It changes nothing, and sees the store as of the call. While it runs, the
// write-ahead log cannot be truncated, so it grows.
//
// Verify calls progress, if not nil, now and then with the number of records read
// and the number of all records. An error means that Verify could not finish, not
// that there are problems.
func (s *Store) Verify(ctx context.Context, progress func(done, total int64)) (Report, error) {
	if s.closed.Load() {
		return Report{}, errClosed()
	}
	c, err := dial(dataSource(s.file, "ro", readerPragmas))
	if err != nil {
		return Report{}, unsound(s.file, err)
	}
	defer func() { _ = c.close() }()
	c.ctx = ctx
	v := &verifier{conn: c, progress: progress}
	if v.progress == nil {
		v.progress = func(int64, int64) {}
	}
	err = v.run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	var broken *dbError
	if errors.As(err, &broken) && environmental(err) { // that the rest cannot be read is a finding, not a failure
		v.problem("the database cannot be read: %v", err)
		err = nil
	}
	return v.Report, err
}

type verifier struct {
	Report
	conn     *conn
	progress func(done, total int64)
	total    int64
	trails   *trails
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.Problems) == maxProblems {
		v.More++
		return
	}
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) run() (err error) {
	if err := v.conn.exec("BEGIN"); err != nil { // everything below sees one state of the data
		return err
	}
	if v.total, err = v.conn.number(`SELECT count(*) FROM events`); err != nil {
		return err
	}
	if v.trails, err = findTrails(v.conn); err != nil {
		return err
	}
	v.progress(0, v.total)
	if err := v.checkFile(); err != nil {
		return err
	}
	ids, err := v.sessions()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := v.checkSession(id); err != nil {
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
			v.problem("the database file is damaged: %s", found)
		}
		return nil
	}, `PRAGMA integrity_check(100)`)
}

func (v *verifier) sessions() ([]string, error) {
	var ids []string
	err := v.conn.query(func(row []driver.Value) error {
		ids = append(ids, text(row[0]))
		return nil
	}, `SELECT id FROM sessions ORDER BY gen`)
	return ids, err
}

func (v *verifier) checkSession(id string) error {
	s, _, err := load(v.conn, id)
	var broken *dbError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		v.problem("session %q: %v", id, err)
		return nil
	case s == nil:
		v.problem("session %q has no head", id)
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
			v.problem("session %q inherits offsets %d to %d, but the next inherited offset must be %d", s.ID, span.from, span.to, at)
		}
		at = span.to
		held, err := v.conn.number(`SELECT count(*) FROM sessions s JOIN heads h ON h.session = s.gen
			WHERE s.gen = ? AND s.fork_at <= ? AND h.head >= ?`, span.gen, span.from, span.to)
		if err != nil {
			return err
		}
		if held == 0 {
			v.problem("session %q inherits offsets %d to %d of a session that does not have them", s.ID, span.from, span.to)
		}
	}
	if at != s.ForkedAt {
		v.problem("session %q was forked at offset %d, but inherits the events below offset %d", s.ID, s.ForkedAt, at)
	}
	forks, err := v.conn.number(`SELECT count(*) FROM sessions WHERE parent = ?`, s.ID)
	if err != nil {
		return err
	}
	if forks != s.forks {
		v.problem("session %q has %d forks, but its stored count is %d", s.ID, forks, s.forks)
	}
	if s.gone && forks == 0 {
		v.problem("session %q was deleted and no fork needs it, but it is still stored", s.ID)
	}
	if s.Parent == "" {
		return nil
	}
	parents, err := v.conn.number(`SELECT count(*) FROM sessions WHERE id = ?`, s.Parent)
	if err == nil && parents == 0 {
		v.problem("session %q was forked from %q, which is not stored", s.ID, s.Parent)
	}
	return err
}

// checkRest looks for rows that belong to no session.
func (v *verifier) checkRest() error {
	purged, err := v.conn.number(`SELECT count(*) FROM purges p JOIN events e ON e.session = p.session`)
	if err != nil {
		return err
	}
	if n := v.total - purged - v.Events; n != 0 {
		v.problem("%d events belong to no session", n)
	}
	for _, table := range [...]string{"heads", "lineage", "places"} {
		n, err := v.conn.number(`SELECT count(*) FROM ` + table + ` WHERE session NOT IN (SELECT gen FROM sessions UNION ALL SELECT session FROM purges)`)
		if err != nil {
			return err
		}
		if n != 0 {
			v.problem("%d rows of the table %s belong to no session", n, table)
		}
	}
	return nil
}
