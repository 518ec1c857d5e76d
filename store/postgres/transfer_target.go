package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// markTable is a table that exists only while a database has a part of the sessions that a
// transfer copies. No migration creates it.
const markTable = "transfer"

const (
	sqlCreateMark = `CREATE TABLE transfer (source text NOT NULL, fingerprint text NOT NULL, gen bigint NOT NULL, event_gen bigint NOT NULL, event_offset bigint NOT NULL)`
	sqlInsertMark = `INSERT INTO transfer (source, fingerprint, gen, event_gen, event_offset) VALUES ($1, $2, $3, $4, $5)`
	sqlMark       = `SELECT source, fingerprint, gen, event_gen, event_offset FROM transfer`
	sqlMoveMark   = `UPDATE transfer SET gen = $1, event_gen = $2, event_offset = $3`
	sqlDropMark   = `DROP TABLE transfer`
	sqlHasMark    = `SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'transfer'`
	sqlPutFact    = `INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

	sqlFilledTables = `SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname NOT IN ('migrations', 'owner', 'facts')`
)

// Mark implements [store.TransferTarget].
func (t *Transfer) Mark(ctx context.Context) (*store.TransferMark, error) {
	marks := 0
	if err := t.query(ctx, func(r pgx.Rows) error { return r.Scan(&marks) }, sqlHasMark, t.target.schema); err != nil || marks == 0 {
		return nil, err // OpenTarget has looked whether it is empty
	}
	var m *store.TransferMark
	err := t.query(ctx, func(r pgx.Rows) error {
		m = new(store.TransferMark)
		err := r.Scan(&m.Source, &m.Fingerprint, &m.Gen, &m.EventGen, &m.EventOffset)
		m.Source = original(m.Source)
		return err
	}, sqlMark)
	return m, err
}

// empty returns an error if a table has a row.
func (t *Transfer) empty(ctx context.Context) error {
	var names []string
	err := t.query(ctx, func(r pgx.Rows) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	}, sqlFilledTables, t.target.schema)
	if err != nil {
		return err
	}
	for _, name := range names {
		filled := false
		err := t.query(ctx, func(r pgx.Rows) error { return r.Scan(&filled) }, `SELECT EXISTS (SELECT 1 FROM `+pgx.Identifier{name}.Sanitize()+`)`)
		switch {
		case err != nil:
			return err
		case filled:
			return store.NotEmpty(t.Where())
		}
	}
	return nil
}

// commit runs f in a transaction of the owner of the lease.
func (t *Transfer) commit(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := t.conn.Begin(ctx)
	if err == nil {
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		err = f(tx)
	}
	if err == nil {
		t.commits++
		_, err = tx.Exec(ctx, sqlFence, t.lease.epoch.Load(), t.commits)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	var known *tapedeck.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return err
	case code(err) == codeDivision:
		return t.taken()
	}
	return unwritten(err)
}

// moveMark notes how far the transfer is.
func moveMark(ctx context.Context, tx pgx.Tx, m *store.TransferMark) error {
	_, err := tx.Exec(ctx, sqlMoveMark, m.Gen, m.EventGen, m.EventOffset)
	return err
}

// Begin implements [store.TransferTarget].
func (t *Transfer) Begin(ctx context.Context, tables []store.TransferTable, m store.TransferMark) error {
	found, err := t.Mark(ctx)
	if err != nil {
		return err
	}
	return t.commit(ctx, func(tx pgx.Tx) error {
		if found == nil {
			if _, err := tx.Exec(ctx, sqlCreateMark); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, sqlInsertMark, stored(m.Source), m.Fingerprint, m.Gen, m.EventGen, m.EventOffset)
			return err
		}
		for _, table := range tables {
			statement, args := `DELETE FROM `+pgx.Identifier{table.Name}.Sanitize(), []any(nil)
			if table.Key != "" {
				statement, args = statement+` WHERE `+pgx.Identifier{table.Key}.Sanitize()+` > $1`, []any{m.Gen}
			}
			if _, err := tx.Exec(ctx, statement, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutRows implements [store.TransferTarget].
func (t *Transfer) PutRows(ctx context.Context, table store.TransferTable, rows []store.TransferRow, m store.TransferMark) error {
	return t.commit(ctx, func(tx pgx.Tx) error {
		if len(rows) > 0 {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{table.Name}, table.Columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				values := make([]any, len(rows[i]))
				for c, v := range rows[i] {
					values[c] = column(t.types[table.Name+"."+table.Columns[c]], v)
				}
				return values, nil
			}))
			if err != nil {
				return err
			}
		}
		return moveMark(ctx, tx, &m)
	})
}

// column returns a value as a column of a type has it.
func column(kind string, v any) any {
	switch v := v.(type) {
	case string:
		if kind == "bytea" {
			return []byte(v)
		}
		return stored(v)
	case int64:
		if kind == "boolean" {
			return v != 0
		}
	}
	return v
}

// PutEvents implements [store.TransferTarget].
func (t *Transfer) PutEvents(ctx context.Context, events []store.TransferEvent, m store.TransferMark) error {
	return t.commit(ctx, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"session", "offset", "event", "sum"}, pgx.CopyFromSlice(len(events), func(i int) ([]any, error) {
			e := &events[i]
			data := e.Data
			if data == nil {
				data = []byte{} // an empty message is not null
			}
			return []any{e.Gen, e.Offset, data, (*int64)(e.Sum)}, nil
		}))
		if err != nil {
			return err
		}
		return moveMark(ctx, tx, &m)
	})
}

// End implements [store.TransferTarget].
func (t *Transfer) End(ctx context.Context, f store.TransferFacts) error {
	clean := int64(0)
	if f.Clean {
		clean = 1
	}
	err := t.commit(ctx, func(tx pgx.Tx) error {
		for name, value := range map[string]int64{"gen": f.Gen, "clean": clean, "erased": f.Erased, "cleaned": f.Cleaned} {
			if _, err := tx.Exec(ctx, sqlPutFact, name, value); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, sqlDropMark)
		return err
	})
	if err != nil {
		return err
	}
	// Until autovacuum comes along, plans would be made for empty tables.
	_, _ = t.conn.Exec(ctx, `ANALYZE events, sessions, heads, lineage, producers`) // it is done later otherwise
	return nil
}
