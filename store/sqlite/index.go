package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/ownfile"
	"github.com/tapedeck/tapedeck/search"
)

// An Index keeps the searchable documents of a store, in a file of its own beside
// the database. It is written at its own pace and without an fsync for every commit,
// because it can be recreated from the log at any time.
//
// If sessions are encrypted, the index is in memory: it has what they say, as words.
type Index struct {
	store   *Store
	file    string               // "" in memory
	memory  string               // the name of the database in memory, which its connections share
	readers atomic.Pointer[pool] // their connections also see the database; nil while the index is closed

	mu     sync.Mutex // held while the index is written; guards the fields below
	conn   *conn
	closed bool
}

// indexName is the name of the file in the data folder.
const indexName = "search.db"

// indexVersion is the version of the schema below. A file of another version is
// recreated.
const indexVersion = 3

// isSQLite reports whether a file that begins so is a database of SQLite.
func isSQLite(beginning []byte) bool {
	return bytes.HasPrefix(beginning, []byte("SQLite format 3\x00"))
}

// isIndex reports whether a file that begins so is an index: its schema is at its beginning.
func isIndex(beginning []byte) bool {
	return isSQLite(beginning) && bytes.Contains(beginning, []byte("docs_by_session"))
}

// indexSchema creates the tables. The table docs has the documents, and words is the
// full-text index on their words, see [search.Words]: the tokenizer only separates them at
// spaces. Sessions are identified by their gen, which is never used twice.
var indexSchema = []string{
	`CREATE TABLE docs (
		id         INTEGER PRIMARY KEY,
		session    INTEGER NOT NULL,
		offset     INTEGER NOT NULL,
		kind       TEXT    NOT NULL,
		role       TEXT    NOT NULL,
		thread     TEXT    NOT NULL,
		invocation TEXT    NOT NULL,
		time       INTEGER NOT NULL,
		text       TEXT    NOT NULL
	) STRICT`,
	`CREATE INDEX docs_by_session ON docs (session, offset)`,
	`CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize="ascii")`,
	`INSERT INTO words (words, rank) VALUES ('secure-delete', 1)`,
	`CREATE TABLE sessions (session INTEGER PRIMARY KEY, seen INTEGER NOT NULL, resume INTEGER NOT NULL, base INTEGER NOT NULL) STRICT`,
	`CREATE TABLE remains (id INTEGER PRIMARY KEY) STRICT`, // it has a row while the file may have copies of removed documents
	`PRAGMA user_version = 3`,
}

var indexPragmas = []string{
	"busy_timeout(10000)", "journal_mode(wal)", "synchronous(normal)", "cache_size(-16384)", "mmap_size(0)",
	"trusted_schema(0)", "secure_delete(1)", "wal_autocheckpoint(1000)", "journal_size_limit(67108864)",
}

// errUnclean is the reason for recreating an index after an interrupted erasure.
var errUnclean = errors.New("it may have copies of erased events")

// OpenIndex opens the index in the store's folder. It recreates an index that does
// not exist or cannot be used. [Store.Close] closes it.
func (s *Store) OpenIndex() (*Index, error) {
	if x := s.search.Load(); x != nil {
		return x, nil
	}
	x := &Index{store: s, file: filepath.Join(filepath.Dir(s.file), indexName)}
	if s.keys != nil {
		if err := x.keepInMemory(); err != nil {
			return nil, err
		}
	}
	err := errUnclean
	if s.unclean == 0 || x.file == "" {
		err = x.open()
	}
	if err != nil && !isDiskFault(err) {
		s.options.Logger.Warn("the search index cannot be used and is recreated", "error", err)
		err = x.recreate()
	}
	if err != nil {
		s.options.Logger.Error("the search index cannot be opened; it is opened as soon as the disk allows it", "error", err)
	}
	s.search.Store(x)
	return x, nil
}

// memories numbers the indexes in memory, because each has a name of its own.
var memories atomic.Int64

// keepInMemory makes the index one in memory, and removes the file of an earlier one.
func (x *Index) keepInMemory() error {
	x.disconnect()
	if err := x.removeFile(); err != nil {
		return folderError(x.file, err)
	}
	x.file, x.memory = "", fmt.Sprintf("/tapedeck-search-%d", memories.Add(1))
	return nil
}

// source returns the name of the index for the driver.
func (x *Index) source(mode string, pragmas []string) string {
	if x.file != "" {
		return dataSource(x.file, mode, pragmas)
	}
	// Without temp_store, a VACUUM would write a copy to a temporary file.
	return dataSource(x.memory, mode, append(slices.Clone(pragmas), "temp_store(2)")) + "&vfs=memdb"
}

// logSource returns the name of the database for a connection to the index. Beside one in
// memory, SQLite would look for it in memory, too.
func (x *Index) logSource() string {
	source := dataSource(x.store.file, "ro", nil)
	switch {
	case x.file != "":
		return source
	case runtime.GOOS == "windows":
		return source + "&vfs=win32"
	}
	return source + "&vfs=unix"
}

func (x *Index) recreate() error {
	x.disconnect()
	if err := x.removeFile(); err != nil {
		return err
	}
	err := x.open()
	if err == nil {
		x.store.unclean = 0
	}
	return err
}

// removeFile removes the index. One in memory ends with its last connection.
func (x *Index) removeFile() error {
	if x.file == "" {
		return nil
	}
	for _, end := range databaseEnds {
		if err := os.Remove(x.file + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// connect opens the index if an earlier attempt failed. It requires mu.
func (x *Index) connect() error {
	switch {
	case x.closed:
		return errClosed()
	case x.conn != nil && x.readers.Load() != nil:
		return nil
	}
	var err error
	if x.store.unclean == 0 {
		err = x.open()
	} else {
		err = x.recreate()
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the search index cannot be opened now").WithHint("look at the server's log and at the disk").Because(err)
	}
	return nil
}

func (x *Index) open() (err error) {
	defer func() {
		if err != nil {
			x.disconnect()
		}
	}()
	if err := x.makeFile(); err != nil {
		return err
	}
	if x.conn, err = dial(x.source("rw", indexPragmas)); err != nil {
		return err
	}
	version, err := x.conn.number(`PRAGMA user_version`)
	if err == nil && version != indexVersion {
		err = x.build()
	}
	if info, statErr := os.Stat(x.file); err == nil && statErr == nil && info.Size() < x.store.options.CheckBelow {
		err = quickCheck(x.conn, x.file)
	}
	if err != nil {
		return err
	}
	readers, err := newPool(2, x.source("ro", readerPragmas))
	if err != nil {
		return err
	}
	x.readers.Store(readers)
	readers.each(func(c *conn) {
		err = errors.Join(err, c.exec(`ATTACH DATABASE ? AS log`, x.logSource()))
	})
	return err
}

// makeFile creates the file, which only its owner may read.
func (x *Index) makeFile() error {
	if x.file == "" {
		return nil
	}
	f, err := os.OpenFile(x.file, os.O_CREATE|os.O_WRONLY|ownfile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// build creates the tables. A file that already has tables has another version.
func (x *Index) build() error {
	n, err := x.conn.number(`SELECT count(*) FROM sqlite_schema`)
	if err == nil && n > 0 {
		err = errors.New("it has another version")
	}
	for _, statement := range indexSchema {
		if err == nil {
			err = x.conn.exec(statement)
		}
	}
	return err
}

func (x *Index) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.disconnect()
}

func (x *Index) disconnect() {
	if readers := x.readers.Swap(nil); readers != nil {
		x.store.pauses.close(readers)
	}
	if x.conn != nil {
		_ = x.conn.close()
		x.conn = nil
	}
}

const (
	sqlUnindexed = `FROM log.sessions s JOIN log.heads h ON h.session = s.gen LEFT JOIN sessions i ON i.session = s.gen
	WHERE s.kind = 'session' AND s.deleted IS NULL AND h.head <> coalesce(i.seen, -1)`
	sqlUnindexedList = `SELECT s.id, s.gen, h.head, CASE WHEN h.head >= i.seen THEN i.resume ELSE s.fork_at END,
	CASE WHEN h.head >= i.seen THEN i.base END ` + sqlUnindexed + ` ORDER BY s.gen DESC LIMIT ?`
	sqlDeletedDocs = `SELECT session FROM sessions WHERE session NOT IN (SELECT gen FROM log.sessions WHERE deleted IS NULL) LIMIT ?`
)

// Unindexed returns the sessions with events that are not indexed, newest first. It
// also removes the documents of deleted sessions.
func (x *Index) Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error) {
	var out []search.Pending
	var dead []int64
	var total int64
	err := x.read(ctx, func(c *conn) (err error) {
		if total, err = c.number(`SELECT count(*) ` + sqlUnindexed); err != nil || limit <= 0 {
			return err
		}
		err = c.query(func(row []driver.Value) error {
			out = append(out, search.Pending{Session: text(row[0]), Gen: integer(row[1]), Head: integer(row[2]), From: integer(row[3]), Base: integer(row[4])})
			return nil
		}, sqlUnindexedList, int64(limit))
		if err != nil {
			return err
		}
		return c.query(func(row []driver.Value) error {
			dead = append(dead, integer(row[0]))
			return nil
		}, sqlDeletedDocs, int64(1000))
	})
	if err == nil && len(dead) > 0 {
		err = x.write(func() error { return x.removeAll(dead) })
	}
	return out, int(total), err
}

// read lends f a connection for reading.
func (x *Index) read(ctx context.Context, f func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	readers := x.readers.Load()
	if readers == nil {
		x.mu.Lock()
		err := x.connect()
		readers = x.readers.Load()
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return readers.use(ctx, f)
}

// write calls f in a transaction.
func (x *Index) write(f func() error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.connect(); err != nil {
		return err
	}
	err := x.conn.exec("BEGIN IMMEDIATE")
	if err == nil {
		if err = f(); err == nil {
			err = x.conn.exec("COMMIT")
		}
		if err != nil {
			_ = x.conn.exec("ROLLBACK") // it fails if SQLite has rolled back already
		}
	}
	var broken *dbError
	if errors.As(err, &broken) {
		return tapedeck.Errorf(tapedeck.Unavailable, "the search index could not be written").WithHint("try again").Because(err)
	}
	return err
}

const (
	sqlGen      = `SELECT gen FROM log.sessions WHERE id = ? AND deleted IS NULL`
	sqlAddDoc   = `INSERT INTO docs (session, offset, kind, role, thread, invocation, time, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlAddWords = `INSERT INTO words (rowid, text) VALUES (last_insert_rowid(), ?)`
	// FTS5 needs the words of a document to remove them.
	sqlDropWords = `INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)`
	sqlTexts     = `SELECT id, text FROM docs WHERE session = ?1 AND offset >= ?2`
	sqlDropDocs  = `DELETE FROM docs WHERE session = ?1 AND offset >= ?2`
	sqlTitleText = `SELECT id, text FROM docs WHERE session = ?1 AND kind = 'title'`
	sqlDropTitle = `DELETE FROM docs WHERE session = ?1 AND kind = 'title'`
	sqlSeen      = `INSERT INTO sessions (session, seen, resume, base) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET seen = ?2, resume = ?3, base = ?4`
)

// Index adds documents. They replace those that began at From or later.
func (x *Index) Index(ctx context.Context, in search.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var gen int64
	err := x.read(ctx, func(c *conn) (err error) {
		gen, err = c.number(sqlGen, in.Session)
		return err
	})
	if err != nil || gen != in.Gen { // it was deleted meanwhile
		return err
	}
	return x.write(func() error {
		if err := x.drop(in.Gen, in.From); err != nil {
			return err
		}
		for _, d := range in.Documents {
			if err := x.add(in.Gen, d); err != nil {
				return err
			}
		}
		return x.conn.exec(sqlSeen, in.Gen, in.Seen, in.Resume, in.Base)
	})
}

func (x *Index) add(gen int64, d search.Document) error {
	if d.Kind == search.DocTitle {
		err := x.dropWords(sqlTitleText, gen)
		if err == nil {
			err = x.conn.exec(sqlDropTitle, gen)
		}
		if err != nil || d.Text == "" {
			return err
		}
	}
	err := x.conn.exec(sqlAddDoc, gen, d.Offset, d.Kind, d.Role, d.Thread, d.Invocation, d.Time.UnixMilli(), d.Text)
	if err != nil {
		return err
	}
	return x.conn.exec(sqlAddWords, spaced(d.Text))
}

// spaced returns the words of a text as the full-text index reads them.
func spaced(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, w := range search.Words(text) {
		b.WriteString(w.Text)
		b.WriteByte(' ')
	}
	return b.String()
}

// drop removes the documents of a session from an offset on.
func (x *Index) drop(gen, from int64) error {
	if err := x.dropWords(sqlTexts, gen, from); err != nil {
		return err
	}
	return x.conn.exec(sqlDropDocs, gen, from)
}

// dropWords removes the words of the documents that a query results in.
func (x *Index) dropWords(query string, args ...driver.Value) error {
	return x.conn.query(func(row []driver.Value) error {
		return x.conn.exec(sqlDropWords, row[0], spaced(text(row[1])))
	}, query, args...)
}
