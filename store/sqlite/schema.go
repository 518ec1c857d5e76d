package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"
	modernc "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tapedeck/tapedeck"
)

// applicationID marks our files in their header: "TPDK".
const applicationID = 0x5450444b

//go:embed migration/*.sql
var migrations embed.FS

// versionTable is the table in which goose keeps the migrations of a file.
const versionTable = "migrations"

// inspect checks, before anything changes the database file, that it is ours and
// that it is sound. If the file does not exist, inspect creates an empty one: only
// its owner can read it, and SQLite gives the files beside it the same permissions,
// even in a folder that is open to others.
func inspect(file string, checkBelow int64) error {
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
	id, err := c.number(`PRAGMA application_id`)
	if err != nil {
		return unsound(file, err)
	}
	tables, err := c.number(`SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return unsound(file, err)
	}
	if id != applicationID && (id != 0 || tables != 0) {
		return foreign(file)
	}
	if tables == 0 || info.Size() >= checkBelow {
		return nil
	}
	return quickCheck(c, file)
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
		WithHint("run `tapedeck verify` to learn how far it can be read, or put a backup in its place").Because(err)
}

// migrate updates the schema. It refuses a schema that is newer than the program.
func migrate(ctx context.Context, file string) error {
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
		return tapedeck.Errorf(tapedeck.Conflict, "the database %s was written by a newer Tapedeck (its schema is number %d, this program knows %d)", file, has, knows).
			WithHint("use that version or a later one")
	}
	if err == nil {
		_, err = p.Up(ctx)
	}
	var e *modernc.Error
	if errors.As(err, &e) {
		return unsound(file, err)
	}
	return err
}
