package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A Transfer is a data folder as [store.Transfer] reads or fills it. It has the lock of the
// folder, so that no other process uses it meanwhile.
type Transfer struct {
	dir, file string
	lock      *Lock
	conn      *conn
	types     map[string]string // of columns, by "table.column"
	tables    []store.TransferTable
	pos       int64 // of the newest event
}

var (
	_ store.TransferSource = (*Transfer)(nil)
	_ store.TransferTarget = (*Transfer)(nil)
)

// OpenSource opens a data folder to copy it. Its sessions do not change. The error is a
// [tapedeck.Conflict] if a process uses the folder, or if another version of Tapedeck wrote
// it, and a [tapedeck.NotFound] if it has no database.
func OpenSource(ctx context.Context, dir string) (*Transfer, error) {
	if err := Find(dir); err != nil {
		return nil, err
	}
	return openTransfer(ctx, dir, append([]string{"query_only(1)"}, readerPragmas...), func(t *Transfer) error {
		switch has, err := t.version(); {
		case err != nil:
			return err
		case has < knownVersion():
			return tapedeck.Errorf(tapedeck.Conflict, "the database %s was written by an older Tapedeck", t.file).
				WithHint("run `tapedeck verify` on the folder once; it updates the tables")
		}
		if n, err := t.conn.number(sqlHasEncrypted); err != nil || n > 0 {
			return errors.Join(err, encryptedSource(dir))
		}
		return checkMark(t.conn, t.file)
	})
}

// encryptedSource is the error for a folder whose sessions no other store can read.
func encryptedSource(dir string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "sessions in %s are encrypted, and PostgreSQL does not keep encrypted sessions", dir).
		WithHint("copy single sessions with tapedeck export and tapedeck import; they are not encrypted there")
}

// OpenTarget opens a data folder to copy sessions to it, and creates it, or updates its
// tables. The errors are those of [Open].
func OpenTarget(ctx context.Context, dir string) (*Transfer, error) {
	// Here nothing else copies the write-ahead log to the database.
	return openTransfer(ctx, dir, append(slices.Clone(writerPragmas), "wal_autocheckpoint(4000)"), func(t *Transfer) error {
		has, err := t.version()
		if err != nil {
			return err
		}
		marks, err := t.conn.number(sqlHasMark)
		switch {
		case err != nil:
			return unsound(t.file, err)
		case marks > 0 && has < knownVersion():
			return store.OlderTransfer(t.dir)
		case marks > 0:
			return nil
		}
		if has > 0 {
			if err := t.empty(); err != nil {
				return err
			}
		}
		return migrate(ctx, t.file)
	})
}

func openTransfer(ctx context.Context, dir string, pragmas []string, open func(*Transfer) error) (_ *Transfer, err error) {
	t := &Transfer{dir: dir}
	if t.lock, err = TakeLock(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = t.Close()
		}
	}()
	if t.file, err = makeFolder(dir, false); err != nil {
		return nil, err
	}
	if err = inspect(t.file, new(Options).withDefaults().CheckBelow); err != nil {
		return nil, err
	}
	if t.conn, err = dial(dataSource(t.file, "rw", pragmas)); err != nil {
		return nil, unsound(t.file, err)
	}
	if err = open(t); err != nil {
		return nil, err
	}
	if err = t.readColumns(ctx); err != nil {
		return nil, err
	}
	if t.pos, err = t.conn.number(`SELECT coalesce(max(pos), 0) FROM events`); err != nil {
		return nil, unsound(t.file, err)
	}
	return t, nil
}

// version returns the number of the schema, 0 for an empty file. It refuses a newer one.
func (t *Transfer) version() (has int64, err error) {
	tables, err := t.conn.number(`SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'`)
	if err == nil && tables > 0 {
		has, err = t.conn.number(`SELECT coalesce(max(version_id), 0) FROM migrations WHERE is_applied`)
	}
	switch known := knownVersion(); {
	case err != nil:
		return 0, unsound(t.file, err)
	case has > known:
		return 0, newer(t.file, has, known)
	}
	return has, nil
}

// Close releases the folder.
func (t *Transfer) Close() error {
	var err error
	if t.conn != nil {
		err = t.conn.close()
	}
	t.lock.Release()
	return err
}

// Where implements [store.TransferSide].
func (t *Transfer) Where() string { return t.dir }

// Held implements [store.TransferSource]. The lock ends only with the process.
func (t *Transfer) Held(context.Context) error { return nil }

// notCopied are the tables that have no counterpart in other stores, or that are copied in
// a way of their own.
var notCopied = []string{versionTable, "transfer", "facts", "events", "places", "purges"}

const sqlColumns = `SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c
	WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY t.name, c.name`

// readColumns reads which tables and columns there are.
func (t *Transfer) readColumns(ctx context.Context) error {
	t.types = map[string]string{}
	return t.query(ctx, func(row []driver.Value) error {
		table, column := text(row[0]), text(row[1])
		if slices.Contains(notCopied, table) {
			return nil
		}
		if n := len(t.tables); n == 0 || t.tables[n-1].Name != table {
			t.tables = append(t.tables, store.TransferTable{Name: table})
		}
		last := &t.tables[len(t.tables)-1]
		last.Columns = append(last.Columns, column)
		if column == "gen" || column == "session" {
			last.Key = column
		}
		t.types[table+"."+column] = text(row[2])
		return nil
	}, sqlColumns)
}

// query runs a query for a whole transfer.
func (t *Transfer) query(ctx context.Context, row func([]driver.Value) error, statement string, args ...driver.Value) error {
	return unread(t.conn.query(func(values []driver.Value) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return row(values)
	}, statement, args...))
}

// Tables implements [store.TransferSide].
func (t *Transfer) Tables(context.Context) ([]store.TransferTable, error) { return t.tables, nil }

// NextGen implements [store.TransferSide].
func (t *Transfer) NextGen(ctx context.Context, gen int64, n int) (int64, error) {
	err := t.query(ctx, func(row []driver.Value) error {
		gen = integer(row[0])
		return nil
	}, `SELECT coalesce(max(gen), ?1) FROM (SELECT gen FROM sessions WHERE gen > ?1 ORDER BY gen LIMIT ?2)`, gen, int64(n))
	return gen, err
}

// CountEvents implements [store.TransferSide].
func (t *Transfer) CountEvents(ctx context.Context) (n int64, err error) {
	err = t.query(ctx, func(row []driver.Value) error {
		n = integer(row[0])
		return nil
	}, `SELECT count(*) FROM events WHERE session NOT IN (SELECT session FROM purges)`)
	return n, err
}

// Rows implements [store.TransferSide].
func (t *Transfer) Rows(ctx context.Context, table store.TransferTable, after, last int64) iter.Seq2[store.TransferRow, error] {
	list := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		list[i] = quoted(c)
		if t.types[table.Name+"."+c] == "BLOB" {
			list[i] = `CAST(` + list[i] + ` AS TEXT)` // the driver reads no bytes as null
		}
	}
	statement, args := `SELECT `+strings.Join(list, ", ")+` FROM `+quoted(table.Name), []driver.Value(nil)
	if table.Key != "" {
		key := quoted(table.Key)
		statement += ` WHERE ` + key + ` > ? AND ` + key + ` <= ? AND ` + key + ` NOT IN (SELECT session FROM purges)`
		args = []driver.Value{after, last}
	}
	return func(yield func(store.TransferRow, error) bool) {
		stopped := false
		err := t.query(ctx, func(row []driver.Value) error {
			values := make(store.TransferRow, len(row))
			for i, v := range row {
				values[i] = v
			}
			if stopped = !yield(values, nil); stopped {
				return errStop
			}
			return nil
		}, statement, args...)
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// quoted returns a name as SQL has it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

const sqlExtents = `SELECT s.gen, s.fork_at, h.head FROM sessions s JOIN heads h ON h.session = s.gen WHERE s.gen >= ? ORDER BY s.gen LIMIT 512`

// An extent is the range of offsets of the events that a session holds itself.
type extent struct{ gen, from, to int64 }

// Events implements [store.TransferSide]. It reads each event where the table places says
// that it is, as every other read does.
func (t *Transfer) Events(ctx context.Context, gen, offset int64) iter.Seq2[store.TransferEvent, error] {
	return func(yield func(store.TransferEvent, error) bool) {
		trails, err := findTrails(t.conn)
		for next := gen; err == nil; {
			var extents []extent
			err = t.query(ctx, func(row []driver.Value) error {
				extents = append(extents, extent{integer(row[0]), integer(row[1]), integer(row[2])})
				return nil
			}, sqlExtents, next)
			if len(extents) == 0 {
				break
			}
			for _, x := range extents {
				if x.gen == gen {
					x.from = max(x.from, offset+1)
				}
				if err = t.eventsOf(ctx, trails, x, yield); err != nil {
					break
				}
				next = x.gen + 1
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(store.TransferEvent{}, t.unread(err))
		}
	}
}

// unread returns the error for users when events cannot be read.
func (t *Transfer) unread(err error) error {
	if errors.Is(err, errMissingOffset) {
		return tapedeck.Errorf(tapedeck.Internal, "an event is missing in %s", t.file).WithHint(verifyHint)
	}
	return unread(err)
}

// eventsOf yields the events of one session. It returns errStop if yield wants no more.
func (t *Transfer) eventsOf(ctx context.Context, trails *trails, x extent, yield func(store.TransferEvent, error) bool) error {
	for from := x.from; from < x.to; from += window {
		pos, err := trails.locate(t.conn, x.gen, from, min(x.to, from+window))
		if err != nil {
			return err
		}
		at, stopped := from, false
		err = fetch(t.conn, x.gen, pos, func(row []driver.Value) error {
			if integer(row[0]) != at {
				return errMissingOffset
			}
			at++
			e := store.TransferEvent{Gen: x.gen, Offset: at - 1, Data: recordOf(row).Data}
			if sum, ok := row[4].(int64); ok {
				e.Sum = new(store.Sum(sum))
			}
			if stopped = !yield(e, nil); stopped {
				return errStop
			}
			return nil
		})
		switch {
		case stopped:
			return errStop
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && at != min(x.to, from+window):
			return errMissingOffset
		case err != nil:
			return err
		}
	}
	return nil
}

// Facts implements [store.TransferSource].
func (t *Transfer) Facts(ctx context.Context) (f store.TransferFacts, err error) {
	if f.Gen, err = t.conn.number(sqlNewestGen); err == nil {
		err = t.query(ctx, func(row []driver.Value) error {
			value := integer(row[1])
			switch text(row[0]) {
			case "clean":
				f.Clean = value != 0
			case "erased":
				f.Erased = value
			case "cleaned":
				f.Cleaned = value
			}
			return nil
		}, `SELECT name, value FROM facts`)
	}
	return f, unread(err)
}

// Verify implements [store.TransferSource].
func (t *Transfer) Verify(ctx context.Context, progress func(done, total int64)) (store.Report, error) {
	c, err := dial(dataSource(t.file, "ro", readerPragmas))
	if err != nil {
		return store.Report{}, unsound(t.file, err)
	}
	defer func() { _ = c.close() }()
	return verify(ctx, c, keyring{}, progress)
}
