package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// partTable exists only in the databases of a store of several. No migration creates it.
const partTable = "part"

const (
	sqlPart       = `SELECT cluster, number, "of", complete FROM part`
	sqlCreatePart = `CREATE TABLE part (id integer PRIMARY KEY CHECK (id = 1), cluster text NOT NULL, number integer NOT NULL, "of" integer NOT NULL, complete boolean NOT NULL)`
	sqlInsertPart = `INSERT INTO part VALUES (1, $1, $2, $3, false)`
	sqlFinishPart = `UPDATE part SET complete = true`

	// sqlUsed looks for what a server has stored.
	sqlUsed = `SELECT EXISTS (SELECT 1 FROM sessions WHERE kind <> 'view') OR EXISTS (SELECT 1 FROM subscriptions) OR EXISTS (SELECT 1 FROM workflows) OR EXISTS (SELECT 1 FROM spending)`
)

// With returns the options of several databases: o, and o with each of the other addresses.
func (o Options) With(more ...string) []Options {
	all := []Options{o}
	for _, url := range more {
		o.URL = url
		all = append(all, o)
	}
	return all
}

// Arrange checks, before anything changes, that databases are those of one store, all of
// them and in their order. It returns the cluster to which they belong, "" for new ones.
func Arrange(ctx context.Context, databases []Options) (cluster string, err error) {
	if n := len(databases); n > store.MaxParts {
		return "", tapedeck.Errorf(tapedeck.Invalid, "%d databases were given; at most %d are possible", n, store.MaxParts)
	}
	found, names := make([]*store.Part, len(databases)), make([]string, len(databases))
	for i, o := range databases {
		if names[i], err = o.Where(); err != nil {
			return "", err
		}
	}
	for i, o := range databases {
		if found[i], err = partOf(ctx, o); err != nil {
			return "", err
		}
	}
	return store.Arrange(found, names)
}

// partOf returns which of several databases one is, nil if it is the only one of its
// store or has no tables yet. It changes nothing and needs no lease.
func partOf(ctx context.Context, o Options) (*store.Part, error) {
	o = o.withDefaults()
	t, err := parse(&o)
	if err != nil {
		return nil, err
	}
	c, err := t.connect(ctx, "part")
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	f, err := t.inspect(ctx, c)
	if err != nil {
		return nil, plain(err)
	}
	return f.part, nil
}

// readPart reads the part of a database that has the table.
func (t *target) readPart(ctx context.Context, c *pgx.Conn) (*store.Part, error) {
	p := new(store.Part)
	if err := c.QueryRow(ctx, sqlPart).Scan(&p.Cluster, &p.Number, &p.Of, &p.Complete); err != nil {
		return nil, t.unusable(err)
	}
	return p, nil
}

// takePart notes, for the owner of the lease, which of several databases this one is. It
// refuses a database that is another one.
func (s *Store) takePart(ctx context.Context) error {
	t, c, want := s.target, s.lease.conn, s.options.Part
	f, err := t.inspect(ctx, c)
	switch {
	case err != nil:
		return err
	case want == nil && f.part != nil:
		return store.NotAlone(t.where(), f.part)
	case want == nil:
		return nil
	case f.part == nil:
		return s.notePart(ctx, want)
	case f.part.Cluster != want.Cluster || f.part.Number != want.Number || f.part.Of != want.Of:
		return store.NotThatPart(t.where(), f.part, want)
	}
	return nil
}

// notePart notes the part in a database without one, which must be empty.
func (s *Store) notePart(ctx context.Context, p *store.Part) error {
	var used bool
	if err := s.lease.conn.QueryRow(ctx, sqlUsed).Scan(&used); err != nil {
		return s.target.unusable(err)
	}
	if used {
		return store.NotThatPart(s.target.where(), nil, p)
	}
	return s.changePart(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlCreatePart); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlInsertPart, p.Cluster, p.Number, p.Of)
		return err
	})
}

// FinishPart notes that every database of the cluster has its part. Call it when all are
// open.
func (s *Store) FinishPart(ctx context.Context) error {
	return plain(s.changePart(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlFinishPart)
		return err
	}))
}

// changePart changes the part in a transaction of the owner of the lease.
func (s *Store) changePart(ctx context.Context, change func(pgx.Tx) error) error {
	c, err := s.target.connect(ctx, "part")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlOwns, s.lease.epoch.Load())
		return err
	})
	switch {
	case err == nil:
		return nil
	case code(err) == codeDivision:
		return tapedeck.Errorf(tapedeck.Conflict, "another server has taken over %s at this moment", s.target.where()).WithHint("start again")
	}
	return s.target.unusable(err)
}

// noPart refuses to copy one of several databases.
func (t *target) noPart(ctx context.Context, c *pgx.Conn) error {
	f, err := t.inspect(ctx, c)
	if err != nil || f.part == nil {
		return err
	}
	return tapedeck.Errorf(tapedeck.Unsupported, "%s is %s, and migrate copies only a database that has all sessions", t.where(), f.part).
		WithHint("copy single sessions with `tapedeck export` and `tapedeck import`")
}

// Ids calls each with the id of every session of a database, whatever its kind, also of one
// that was deleted while forks need it. origin is the [tapedeck.Spec.Origin] of a pointer.
// It changes nothing and needs no lease.
func Ids(ctx context.Context, o Options, each func(id string, kind tapedeck.SessionKind, origin string)) error {
	o = o.withDefaults()
	o.StatementTimeout = 0 // nobody waits
	t, err := parse(&o)
	if err != nil {
		return err
	}
	c, err := t.connect(ctx, "verify")
	if err != nil {
		return plain(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if err := t.readable(ctx, c); err != nil {
		return plain(err)
	}
	return plain(queryRows(ctx, c, func(r pgx.Rows) error {
		var id, kind, origin string
		err := r.Scan(&id, &kind, &origin)
		each(original(id), tapedeck.SessionKind(kind), original(origin))
		return err
	}, `SELECT id, kind, CASE kind WHEN 'pointer' THEN origin ELSE '' END FROM sessions`))
}
