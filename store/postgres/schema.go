package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

//go:embed migration/*.sql
var migrations embed.FS

// versionTable is the table in which goose keeps the migrations of a schema.
const versionTable = "migrations"

// knownVersion returns the number of the newest migration of this program.
func knownVersion() int64 {
	files, _ := fs.Glob(migrations, "migration/*.sql") // the pattern is valid
	return int64(len(files))
}

const (
	sqlServer = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
	current_setting('transaction_read_only') = 'on'`
	sqlTables = `SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`
	sqlSchemas = `SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1`
	sqlVersion = `SELECT coalesce(max(version_id), 0) FROM migrations WHERE is_applied`
)

// oldest is the oldest PostgreSQL that the store is tested with.
const oldest = 15

// A found schema is what inspect has found.
type found struct {
	version  int64 // of the schema; 0 for none
	schema   bool  // it exists
	readOnly bool  // the database takes no writes
	marked   bool  // a transfer has copied only a part of the sessions to it

	part *store.Part // which of several databases it is; nil for the only one
}

// inspect checks, before anything changes, that the database can be used, and that the
// tables in the schema are ours and not newer than the program. It changes nothing.
func (t *target) inspect(ctx context.Context, c *pgx.Conn) (f found, err error) {
	var number int
	var encoding string
	if err := c.QueryRow(ctx, sqlServer).Scan(&number, &encoding, &f.readOnly); err != nil {
		return f, t.unusable(err)
	}
	switch {
	case number/10000 < oldest:
		return f, tapedeck.Errorf(tapedeck.Unsupported, "%s is PostgreSQL %d; Tapedeck needs %d or later", t.where(), number/10000, oldest)
	case encoding != "UTF8":
		return f, tapedeck.Errorf(tapedeck.Unsupported, "%s has the encoding %s; Tapedeck needs UTF8", t.where(), encoding).
			WithHint("create one with: createdb --encoding=UTF8 --template=template0 tapedeck")
	}
	tables := map[string]bool{}
	err = queryRows(ctx, c, func(r pgx.Rows) error {
		var name string
		err := r.Scan(&name)
		tables[name] = true
		return err
	}, sqlTables, t.schema)
	if err != nil {
		return f, t.unusable(err)
	}
	var schemas int
	if err := c.QueryRow(ctx, sqlSchemas, t.schema).Scan(&schemas); err != nil {
		return f, t.unusable(err)
	}
	f.schema = schemas > 0
	ours := tables[versionTable] && (len(tables) == 1 || tables["owner"] && tables["events"])
	if len(tables) > 0 && !ours {
		return f, tapedeck.Errorf(tapedeck.Conflict, "the schema %s in %s has tables that are not Tapedeck's", t.schema, t.where()).
			WithHint("name another schema in the URL: ?search_path=tapedeck2")
	}
	f.marked = tables[markTable]
	if tables[partTable] {
		if f.part, err = t.readPart(ctx, c); err != nil {
			return f, err
		}
	}
	if tables[versionTable] {
		if err := c.QueryRow(ctx, sqlVersion).Scan(&f.version); err != nil {
			return f, t.unusable(err)
		}
	}
	if known := knownVersion(); f.version > known {
		return f, tapedeck.Errorf(tapedeck.Conflict, "%s was written by a newer Tapedeck (its schema is number %d, this program knows %d)", t.where(), f.version, known).
			WithHint("use that version or a later one").Because(errNewer)
	}
	return f, nil
}

// incomplete returns the error for tables with a part of the sessions.
func (t *target) incomplete() error {
	return store.IncompleteTransfer(fmt.Sprintf("the schema %s of %s", t.schema, t.where()))
}

func (t *target) readOnly() error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s takes no writes: it is a replica, or set to read-only", t.where()).
		WithHint("use the address of the primary server; target_session_attrs=read-write in the URL finds it among several hosts")
}

// unusable returns the error for users when the tables cannot be read or created.
func (t *target) unusable(err error) error {
	user := t.pool.ConnConfig.User
	switch code(err) {
	case codeDenied:
		return tapedeck.Errorf(tapedeck.Forbidden, "user %q may not use or create the schema %s in %s: %s", user, t.schema, t.where(), message(err)).
			WithHint("as the owner of the database run: CREATE SCHEMA %s AUTHORIZATION %s", t.schema, pgx.Identifier{user}.Sanitize()).Because(err)
	case codeReadOnly:
		return t.readOnly()
	case "":
		return t.unreached(context.Background(), err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the tables in %s cannot be created or read: %s", t.where(), message(err)).
		WithHint("look at the log of PostgreSQL").Because(err)
}

// prepare creates the tables unless they exist. It leaves it to the owner of the lease to
// update those that exist.
func (t *target) prepare(ctx context.Context, c *pgx.Conn) error {
	for attempt := 0; ; attempt++ {
		f, err := t.inspect(ctx, c)
		if err == nil && f.readOnly {
			err = t.readOnly()
		}
		if err != nil || f.version > 0 {
			return err
		}
		if !f.schema {
			_, err = c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{t.schema}.Sanitize())
		}
		if err == nil {
			err = t.migrate(ctx)
		}
		if again, waited := t.isRace(ctx, err, attempt); waited != nil {
			return waited
		} else if again {
			continue
		}
		if err != nil {
			return t.unusable(err)
		}
		return nil
	}
}

// update updates the tables, for the owner of the lease. It refuses those that have only a
// part of the sessions.
func (t *target) update(ctx context.Context, c *pgx.Conn) error {
	f, err := t.inspect(ctx, c) // while the owner waited for the lease, another server may have updated them
	switch {
	case err != nil:
		return err
	case f.marked:
		return t.incomplete()
	case f.version == knownVersion():
		return nil
	}
	if err := t.migrate(ctx); err != nil {
		return t.unusable(err)
	}
	return nil
}

// isRace reports whether err says that another server creates the same at this moment. It
// waits then, so that the caller looks again.
func (t *target) isRace(ctx context.Context, err error, attempt int) (bool, error) {
	switch code(err) {
	case codeDuplicate, codeDuplicateName, codeDuplicateCol, codeUnique:
	default:
		return false, nil
	}
	if attempt >= 20 {
		return false, nil
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return true, nil
	}
}

// migrate updates the tables. A migration that fails leaves nothing. Two servers may run
// the same one: the first that has created the tables lets the next one take the lease,
// which updates them, too.
func (t *target) migrate(ctx context.Context) error {
	db := stdlib.OpenDB(*t.settings("migration", map[string]string{"statement_timeout": "0"}))
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	p, err := provider(db)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		_, err = p.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			err = partial.Err
		}
		if again, waited := t.isRace(ctx, err, attempt); waited != nil || !again {
			return cmp.Or(waited, err)
		}
	}
}

func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migration")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}
