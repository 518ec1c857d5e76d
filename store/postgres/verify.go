package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Verify reads all data and reports problems. It checks the checksums and offsets of every session,
// the records that forks inherit, that every event can be read and has the right offset,
// and that the catalogue agrees with the events. It changes nothing, sees the database
// as of the call, and needs no lease: a server may run meanwhile.
//
// Verify calls progress, if not nil, now and then with the number of records read
// and the number of all records. An error means that Verify could not finish, not
// that there are problems.
func Verify(ctx context.Context, o Options, progress func(done, total int64)) (store.Report, error) {
	o = o.withDefaults()
	t, err := parse(&o)
	if err != nil {
		return store.Report{}, err
	}
	c, err := t.connect(ctx, "verify")
	if err != nil {
		return store.Report{}, plain(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if err := t.readable(ctx, c); err != nil {
		return store.Report{}, plain(err)
	}
	return verify(ctx, c, progress)
}

// readable returns an error unless there are tables of this version, with all sessions.
func (t *target) readable(ctx context.Context, c *pgx.Conn) error {
	switch f, err := t.inspect(ctx, c); {
	case err != nil:
		return err
	case f.version == 0:
		return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions in the schema %s of %s", t.schema, t.where())
	case f.version < knownVersion():
		return tapedeck.Errorf(tapedeck.Conflict, "the tables in %s are of an older Tapedeck", t.where()).
			WithHint("start the server of this version once; it updates them")
	case f.marked:
		return t.incomplete()
	}
	return nil
}

// verify does what Verify does, on a connection that is not used for anything else.
func verify(ctx context.Context, c *pgx.Conn, progress func(done, total int64)) (store.Report, error) {
	v := &verifier{ctx: ctx, conn: c, progress: progress}
	if v.progress == nil {
		v.progress = func(int64, int64) {}
	}
	err := v.run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return v.Report, unread(err)
}

type verifier struct {
	store.Report
	ctx      context.Context
	conn     *pgx.Conn
	progress func(done, total int64)
	total    int64
	blind    bool // something could not be read
}

// survive makes a problem of an error that says that the files are damaged: this is a
// finding, not a failure, and the rest is to be checked all the same.
func (v *verifier) survive(what string, err error) error {
	if !isCorrupt(err) {
		return err
	}
	v.blind = true
	v.Problem("%s cannot be read: %v", what, err)
	return v.goOn()
}

// goOn makes the transaction usable again after an error.
func (v *verifier) goOn() error {
	if _, err := v.conn.Exec(v.ctx, "ROLLBACK TO SAVEPOINT sound"); err != nil {
		return &dbError{err}
	}
	return nil
}

func (v *verifier) ask(row func(pgx.Rows) error, statement string, args ...any) error {
	return queryRows(v.ctx, v.conn, row, statement, args...)
}

func (v *verifier) number(statement string, args ...any) (n int64, err error) {
	err = v.ask(func(r pgx.Rows) error { return r.Scan(&n) }, statement, args...)
	return n, err
}

func (v *verifier) run() (err error) {
	// Everything below sees one state of the data. A time-out of the server for statements
	// is for callers that wait; this reads for as long as it takes.
	for _, statement := range [...]string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL statement_timeout = 0", "SAVEPOINT sound"} {
		if _, err := v.conn.Exec(v.ctx, statement); err != nil {
			return &dbError{err}
		}
	}
	v.total, err = v.number(`SELECT count(*) FROM events`)
	if err = v.survive("the table of the events", err); err != nil {
		return err
	}
	v.progress(0, v.total)
	var ids []string
	err = v.ask(func(r pgx.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, original(id))
		return err
	}, `SELECT id FROM sessions ORDER BY gen`)
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

func (v *verifier) checkSession(id string) error {
	found, err := load(v.ask, id)
	var broken *dbError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		v.Problem("session %q: %v", id, err)
		return nil
	case len(found) == 0:
		v.Problem("session %q has no head", id)
		return nil
	}
	s := found[0].view
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
		held, err := v.number(`SELECT count(*) FROM sessions s JOIN heads h ON h.session = s.gen
			WHERE s.gen = $1 AND s.fork_at <= $2 AND h.head >= $3`, span.gen, span.from, span.to)
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
	forks, err := v.number(`SELECT count(*) FROM sessions WHERE parent = $1`, stored(s.ID))
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
	parents, err := v.number(`SELECT count(*) FROM sessions WHERE id = $1`, stored(s.Parent))
	if err == nil && parents == 0 {
		v.Problem("session %q was forked from %q, which is not stored", s.ID, s.Parent)
	}
	return err
}

// checkRest looks for rows that belong to no session.
func (v *verifier) checkRest() error {
	purged, err := v.number(`SELECT count(*) FROM purges p JOIN events e ON e.session = p.session`)
	if err != nil {
		return err
	}
	if n := v.total - purged - v.Events; n != 0 && !v.blind {
		v.Problem("%d events belong to no session", n)
	}
	for _, table := range [...]string{"heads", "lineage", "producers"} {
		n, err := v.number(`SELECT count(*) FROM ` + table + ` WHERE session NOT IN (SELECT gen FROM sessions UNION ALL SELECT session FROM purges)`)
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
	return v.ask(func(r pgx.Rows) error {
		var diagram []byte
		w, err := scanWorkflow(r, &diagram)
		if err == nil {
			if damaged := w.Check(diagram); damaged != nil {
				v.Problem("%v", damaged)
			}
		}
		return err
	}, `SELECT `+workflowColumns+`, diagram FROM workflows ORDER BY name, number`)
}
