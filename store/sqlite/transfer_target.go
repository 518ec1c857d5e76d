package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

const (
	// The table transfer exists only while a database has a part of the sessions that a
	// transfer copies. No migration creates it.
	sqlHasMark    = `SELECT count(*) FROM sqlite_schema WHERE name = 'transfer'`
	sqlCreateMark = `CREATE TABLE transfer (source TEXT NOT NULL, fingerprint TEXT NOT NULL, gen INTEGER NOT NULL, event_gen INTEGER NOT NULL, event_offset INTEGER NOT NULL) STRICT`
	sqlInsertMark = `INSERT INTO transfer (source, fingerprint, gen, event_gen, event_offset) VALUES (?, ?, ?, ?, ?)`
	sqlMark       = `SELECT source, fingerprint, gen, event_gen, event_offset FROM transfer`
	sqlMoveMark   = `UPDATE transfer SET gen = ?, event_gen = ?, event_offset = ?`
	sqlDropMark   = `DROP TABLE transfer`
	sqlPutFact    = `INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

	sqlDropNewestGen = `DELETE FROM sqlite_sequence WHERE name = 'sessions'`
	sqlSetNewestGen  = `INSERT INTO sqlite_sequence (name, seq) VALUES ('sessions', ?)`
	sqlKind          = `SELECT kind FROM sessions WHERE gen = ?`

	sqlFilledTables = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^' AND name NOT IN ('migrations', 'facts')`
)

// Mark implements [store.TransferTarget].
func (t *Transfer) Mark(ctx context.Context) (m *store.TransferMark, err error) {
	marks, err := t.conn.number(sqlHasMark)
	if err != nil || marks == 0 {
		return nil, unread(err) // OpenTarget has looked whether it is empty
	}
	err = t.query(ctx, func(row []driver.Value) error {
		m = &store.TransferMark{
			Source: text(row[0]), Fingerprint: text(row[1]), Gen: integer(row[2]), EventGen: integer(row[3]), EventOffset: integer(row[4]),
		}
		return nil
	}, sqlMark)
	return m, err
}

// empty returns an error if a table has a row.
func (t *Transfer) empty() error {
	return t.conn.query(func(row []driver.Value) error {
		switch filled, err := t.conn.number(`SELECT EXISTS (SELECT 1 FROM ` + quoted(text(row[0])) + `)`); {
		case err != nil:
			return unsound(t.file, err)
		case filled != 0:
			return store.NotEmpty(t.dir)
		}
		return nil
	}, sqlFilledTables)
}

// commit runs f in a transaction.
func (t *Transfer) commit(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := t.conn.exec("BEGIN IMMEDIATE")
	if err == nil {
		if err = f(); err == nil {
			err = t.conn.exec("COMMIT")
		}
		if err != nil {
			_ = t.conn.exec("ROLLBACK") // it may be rolled back already
		}
	}
	var broken *dbError
	if errors.As(err, &broken) {
		return unwritten(err)
	}
	return err
}

// Begin implements [store.TransferTarget].
func (t *Transfer) Begin(ctx context.Context, tables []store.TransferTable, m store.TransferMark) error {
	found, err := t.Mark(ctx)
	if err != nil {
		return err
	}
	if err := t.removeIndex(); err != nil {
		return err
	}
	return t.commit(ctx, func() error {
		if found == nil {
			if err := t.conn.exec(sqlCreateMark); err != nil {
				return err
			}
			return t.conn.exec(sqlInsertMark, m.Source, m.Fingerprint, m.Gen, m.EventGen, m.EventOffset)
		}
		for _, table := range tables {
			statement, args := `DELETE FROM `+quoted(table.Name), []driver.Value(nil)
			if table.Key != "" {
				statement, args = statement+` WHERE `+quoted(table.Key)+` > ?`, []driver.Value{m.Gen}
			}
			if err := t.conn.exec(statement, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeIndex removes what an earlier database of the folder has left of its search index:
// gens would mean other sessions there.
func (t *Transfer) removeIndex() error {
	for _, end := range databaseEnds {
		if err := os.Remove(filepath.Join(t.dir, indexName+end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return folderError(t.dir, err)
		}
	}
	return nil
}

func (t *Transfer) moveMark(m *store.TransferMark) error {
	return t.conn.exec(sqlMoveMark, m.Gen, m.EventGen, m.EventOffset)
}

// PutRows implements [store.TransferTarget].
func (t *Transfer) PutRows(ctx context.Context, table store.TransferTable, rows []store.TransferRow, m store.TransferMark) error {
	names, values := make([]string, len(table.Columns)), make([]string, len(table.Columns))
	for i, c := range table.Columns {
		names[i], values[i] = quoted(c), "?"
		if t.types[table.Name+"."+c] == "BLOB" {
			values[i] = "CAST(? AS BLOB)" // the driver takes no bytes for null
		}
	}
	insert := `INSERT INTO ` + quoted(table.Name) + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`
	return t.commit(ctx, func() error {
		args := make([]driver.Value, len(table.Columns))
		for _, row := range rows {
			for i, v := range row {
				args[i] = v
			}
			if err := t.conn.exec(insert, args...); err != nil {
				return err
			}
		}
		return t.moveMark(&m)
	})
}

// PutEvents implements [store.TransferTarget]. It also stores the positions of the events.
func (t *Transfer) PutEvents(ctx context.Context, events []store.TransferEvent, m store.TransferMark) error {
	pos := t.pos
	err := t.commit(ctx, func() error {
		for from := 0; from < len(events); {
			to := from + 1
			for to < len(events) && events[to].Gen == events[from].Gen {
				to++
			}
			if err := t.putSession(events[from:to], pos); err != nil {
				return err
			}
			pos += int64(to - from)
			from = to
		}
		for _, statement := range [...]string{sqlHighWater, sqlSetPlaced} {
			if err := t.conn.exec(statement, pos); err != nil {
				return err
			}
		}
		return t.moveMark(&m)
	})
	if err == nil {
		t.pos = pos
	}
	return err
}

// putSession stores events of one session at the positions after pos.
func (t *Transfer) putSession(events []store.TransferEvent, pos int64) error {
	insert := sqlMessage
	err := t.conn.query(func(row []driver.Value) error {
		if text(row[0]) == string(tapedeck.KindSession) {
			insert = sqlEvent
		}
		return nil
	}, sqlKind, events[0].Gen)
	for part := range slices.Chunk(events, maxPlaces) {
		places := make([]int64, len(part))
		for i, e := range part {
			if err != nil {
				return err
			}
			pos++
			places[i] = pos
			var sum driver.Value
			if e.Sum != nil {
				sum = int64(*e.Sum)
			}
			err = t.conn.exec(insert, pos, e.Gen, e.Offset, e.Data, sum)
		}
		if err == nil {
			err = t.conn.exec(sqlPlace, part[0].Gen, part[0].Offset, part[0].Offset+int64(len(part)), encodePlaces(places))
		}
	}
	return err
}

// End implements [store.TransferTarget].
func (t *Transfer) End(ctx context.Context, f store.TransferFacts) error {
	clean, _ := flag(f.Clean).(int64)
	return t.commit(ctx, func() error {
		for name, value := range map[string]int64{"clean": clean, "erased": f.Erased, "cleaned": f.Cleaned} {
			if err := t.conn.exec(sqlPutFact, name, value); err != nil {
				return err
			}
		}
		if err := t.conn.exec(sqlDropNewestGen); err != nil {
			return err
		}
		if err := t.conn.exec(sqlSetNewestGen, f.Gen); err != nil {
			return err
		}
		return t.conn.exec(sqlDropMark)
	})
}
