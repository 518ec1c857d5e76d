package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	modernc "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// applicationID marks our files in their header: "TPDK".
const applicationID = 0x5450444b

//go:embed migration/*.sql
var migrations embed.FS

// versionTable is the table in which goose keeps the migrations of a file.
const versionTable = "migrations"

// knownVersion returns the number of the newest migration of this program.
func knownVersion() int64 {
	files, _ := fs.Glob(migrations, "migration/*.sql") // the pattern is valid
	return int64(len(files))
}

// inspect checks, before anything changes the database file, that it is ours and
// that it is sound. If the file does not exist, inspect creates an empty one: only
// its owner can read it, and SQLite gives the files beside it the same permissions,
// even in a folder that is open to others.
func inspect(file string, checkBelow int64) error {
	if err := checkNames(file); err != nil {
		return folderError(file, err)
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return folderError(file, err)
		}
		return f.Close()
	}
	if err != nil {
		return folderError(file, err)
	}
	// WAL mode and the other pragmas are not set here, because a file that is not
	// ours must stay as it is.
	c, err := dial(dataSource(file, "rw", []string{"busy_timeout(10000)"}))
	if err != nil {
		return unsound(file, err)
	}
	defer func() { _ = c.close() }()
	tables, err := c.number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return unsound(file, err)
	}
	if _, err := recognise(c, file); err != nil {
		return err
	}
	if tables == 0 || info.Size() >= checkBelow {
		return nil
	}
	return quickCheck(c, file)
}

// checkMark returns an error if a transfer has copied only a part of the sessions to the
// database.
func checkMark(c *conn, file string) error {
	marks, err := c.number(sqlHasMark)
	switch {
	case err != nil:
		return unsound(file, err)
	case marks > 0:
		return store.IncompleteTransfer(filepath.Dir(file))
	}
	return nil
}

func quickCheck(c *conn, file string) error {
	var found string
	err := c.query(func(row []driver.Value) error {
		found = text(row[0])
		return errStop
	}, `PRAGMA quick_check(1)`)
	if err == nil && found != "ok" {
		err = errors.New(found)
	}
	if err != nil {
		return unsound(file, err)
	}
	return nil
}

func foreign(file string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "the file %s is not a Tapedeck database", file).
		WithHint("choose another data folder, or move the file away")
}

// unsound returns the error for users when a database file cannot be opened.
func unsound(file string, err error) error {
	switch code(err) {
	case codes.SQLITE_NOTADB:
		return tapedeck.Errorf(tapedeck.Conflict, "the file %s is not a Tapedeck database, or its beginning is damaged", file).
			WithHint("choose another data folder, or put a backup in its place").Because(err)
	case codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_READONLY:
		return tapedeck.Errorf(tapedeck.Invalid, "the file %s cannot be opened for writing", file).
			WithHint("look at its permissions and at those of its folder").Because(err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return tapedeck.Errorf(tapedeck.Unavailable, "another program keeps the file %s locked", file).
			WithHint("close that program and try again").Because(err)
	case codes.SQLITE_FULL:
		return tapedeck.Errorf(tapedeck.Unavailable, "there is no space left to open %s", file).WithHint("make room and try again").Because(err)
	case codes.SQLITE_IOERR:
		return tapedeck.Errorf(tapedeck.Unavailable, "the disk reports an error, or has no space left, when %s is opened", file).
			WithHint("make room, look at the disk, and try again").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Internal, "the database %s is damaged", file).
		WithHint("run `tapedeck verify` to learn what is damaged, put a backup in its place, or read the rest with `tapedeck salvage`").Because(err)
}

// recognise checks that a database is ours, and returns the number of its schema. It
// refuses a newer one, and one of a build from before the first release, which has tables
// but does not say which migrations it has.
func recognise(c *conn, file string) (has int64, err error) {
	id, err := c.number(`PRAGMA application_id`)
	if err != nil {
		return 0, unsound(file, err)
	}
	tables, err := c.number(`SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'`)
	if err != nil {
		return 0, unsound(file, err)
	}
	if id != applicationID && (id != 0 || tables != 0) {
		return 0, foreign(file)
	}
	if tables == 0 {
		return 0, nil
	}
	return recogniseTables(c, file)
}

func recogniseTables(c *conn, file string) (has int64, err error) {
	ours, err := c.number(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('` + versionTable + `', 'sessions', 'heads', 'events', 'places', 'facts')`)
	if err != nil {
		return 0, unsound(file, err)
	}
	listed, err := c.number(`SELECT count(*) FROM sqlite_schema WHERE name = '` + versionTable + `'`)
	if err == nil && listed > 0 {
		has, err = c.number(`SELECT coalesce(max(version_id), 0) FROM ` + versionTable + ` WHERE is_applied`)
	}
	switch known := knownVersion(); {
	case err != nil:
		return 0, unsound(file, err)
	case has > known:
		return has, newer(file, has, known)
	case has == 0 && listed > 0 && ours == 1:
		return 0, nil // the first migration was interrupted
	case ours < 6 || has == 0:
		return has, development(file)
	}
	return has, checkColumns(c, file, has)
}

// development returns the error for a database of a build from before the first release.
func development(file string) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Conflict, "the database %s was written by a development build of Tapedeck from before its first release, which no version can update", file).
		WithHint("export its sessions with the build that wrote it (tapedeck export SESSION), and import them in a new folder")
}

func newer(file string, has, knows int64) error {
	return tapedeck.Errorf(tapedeck.Conflict, "the database %s was written by a newer Tapedeck (its schema is number %d, this program knows %d)", file, has, knows).
		WithHint("use that version or a later one")
}

// migrate updates the schema. It refuses a schema that is newer than the program.
func migrate(ctx context.Context, file string) error {
	return migrateTo(ctx, file, knownVersion())
}

// migrateTo updates the schema up to a version.
func migrateTo(ctx context.Context, file string, version int64) error {
	db, err := sql.Open("sqlite", dataSource(file, "rwc", writerPragmas))
	if err != nil {
		return unsound(file, err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	files, err := fs.Sub(migrations, "migration")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	has, knows, err := p.GetVersions(ctx)
	if err == nil && has > knows {
		return newer(file, has, knows)
	}
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	var e *modernc.Error
	if errors.As(err, &e) {
		return unsound(file, err)
	}
	return err
}

// columnsOf are tables and columns that each migration has created. A build from before
// the first release had other ones under the same numbers.
var columnsOf = [...]string{
	1: `sessions.gen sessions.id sessions.kind sessions.created sessions.title sessions.owner sessions.agent sessions.labels sessions.status
		sessions.runs sessions.open_runs sessions.resumable sessions.last_jump sessions.copy sessions.closed sessions.closed_by sessions.parent
		sessions.fork_at sessions.forks sessions.deleted sessions.content_type sessions.origin sessions.stream_seq sessions.ttl sessions.expires
		sessions.touched sessions.deadline heads.session heads.head heads.updated events.pos events.session events.offset events.event
		places.session places.first places.next places.pos lineage.session lineage.from_offset lineage.to_offset lineage.ancestor
		producers.session producers.id producers.epoch producers.seq producers.first producers.next purges.session facts.name facts.value`,
	2:  `subscriptions.id subscriptions.state acks.session acks.subscription acks.acked`,
	3:  `push_configs.session push_configs.task push_configs.id push_configs.config push_configs.acked`,
	4:  `workflows.name workflows.digest workflows.number workflows.title workflows.added workflows.size workflows.diagram`,
	5:  `sessions.inputs`,
	6:  `sessions.waiting`,
	7:  `sessions.active sessions.activity sessions.title_key sessions.totals_at sessions.tokens sessions.cost sessions.duration sessions.failures sessions.totals`,
	8:  `sessions.budget sessions.spent spending.owner spending.period spending.tokens spending.usd spending.turns spending.seconds spending.grants`,
	9:  `events.sum heads.link`,
	10: `sessions.key sessions.sealed sessions.sealed_totals purges.key`,
	11: ``, // nothing; only PostgreSQL has a table of owners
	12: ``, // nothing; only PostgreSQL has the search index in the database
}

// checkColumns returns an error if a database does not have the tables of its version.
func checkColumns(c *conn, file string, version int64) error {
	found := map[string]bool{}
	err := c.query(func(row []driver.Value) error {
		found[text(row[0])] = true
		return nil
	}, `SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`)
	if err != nil {
		return unsound(file, err)
	}
	for _, columns := range columnsOf[:min(int(version)+1, len(columnsOf))] {
		for column := range strings.FieldsSeq(columns) {
			if !found[column] {
				return development(file).Because(errors.New("it has no column " + column))
			}
		}
	}
	return nil
}
