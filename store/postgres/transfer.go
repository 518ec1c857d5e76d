package postgres

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A Transfer is a database as [store.Transfer] reads or fills it. It has the lease, so that
// no server uses the database meanwhile.
type Transfer struct {
	target  *target
	lease   *lease
	conn    *pgx.Conn
	types   map[string]string // of columns, by "table.column"
	tables  []store.TransferTable
	commits int64 // number of the newest commit

	stop context.CancelFunc
	done chan struct{} // closed when the lease is not renewed any more
}

var (
	_ store.TransferSource = (*Transfer)(nil)
	_ store.TransferTarget = (*Transfer)(nil)
)

// OpenSource opens a database to copy it. Only the row of the lease changes. The error is a
// [tapedeck.Conflict] if a server uses the database, if it is a replica, or if it was
// written by another version of Tapedeck; and others if it cannot be reached or used.
func OpenSource(ctx context.Context, o Options) (*Transfer, error) {
	return openTransfer(ctx, o, func(t *Transfer) error {
		if err := t.target.readable(ctx, t.lease.conn); err != nil {
			return err
		}
		if err := t.target.noPart(ctx, t.lease.conn); err != nil {
			return err
		}
		return t.hold(ctx)
	})
}

// OpenTarget opens a database to copy sessions to it, and creates or updates its tables.
// The errors are those of [Open].
func OpenTarget(ctx context.Context, o Options) (*Transfer, error) {
	return openTransfer(ctx, o, func(t *Transfer) error {
		if err := t.target.prepare(ctx, t.lease.conn); err != nil {
			return err
		}
		if err := t.target.noPart(ctx, t.lease.conn); err != nil {
			return err
		}
		if err := t.hold(ctx); err != nil {
			return err
		}
		// From here on the connection of the lease belongs to the goroutine that renews it.
		f, err := t.target.inspect(ctx, t.conn)
		switch {
		case err != nil:
			return err
		case f.marked && f.version < knownVersion():
			return store.OlderTransfer(t.Where())
		case f.marked:
			return nil
		}
		// The tables of an older version are updated only if they are empty.
		if err := t.empty(ctx); err != nil || f.version == knownVersion() {
			return err
		}
		return t.target.update(ctx, t.conn)
	})
}

func openTransfer(ctx context.Context, o Options, open func(*Transfer) error) (*Transfer, error) {
	o = o.withDefaults()
	o.StatementTimeout = 0 // nobody waits; a table may be read as a whole
	target, err := parse(&o)
	if err != nil {
		return nil, err
	}
	t := &Transfer{target: target, lease: newLease(target, &o), done: make(chan struct{})}
	if err = t.lease.connect(ctx); err == nil {
		t.conn, err = target.connect(ctx, role(t.lease.name))
	}
	if err == nil {
		err = open(t)
	}
	if err == nil {
		err = t.readColumns(ctx)
	}
	if err != nil {
		_ = t.Close()
		return nil, plain(err)
	}
	return t, nil
}

// hold takes the lease, and renews it until Close.
func (t *Transfer) hold(ctx context.Context) error {
	if err := t.lease.take(ctx, false, func(string) {}); err != nil {
		return err
	}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(t.done)
		tick := time.NewTicker(t.lease.ttl / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = t.lease.renew(ctx) // Held and the fence notice if it is lost
			}
		}
	}()
	return nil
}

// Close ends the lease and the connections.
func (t *Transfer) Close() error {
	if t.stop != nil {
		t.stop()
		<-t.done
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if t.conn != nil {
		_ = t.conn.Close(ctx)
	}
	t.lease.release(ctx)
	return nil
}

// Held implements [store.TransferSource].
func (t *Transfer) Held(ctx context.Context) error {
	err := t.lease.renew(ctx)
	if errors.Is(err, errTaken) {
		return t.taken()
	}
	return unread(err)
}

// taken returns the error when a server has taken the database over.
func (t *Transfer) taken() error {
	return tapedeck.Errorf(tapedeck.Conflict, "a server has begun to use %s, because this process did not renew its lease in time", t.target.where()).
		WithHint("stop that server and migrate again")
}

// Where implements [store.TransferSide].
func (t *Transfer) Where() string {
	if t.target.schema != DefaultSchema {
		return t.target.where() + ", schema " + t.target.schema
	}
	return t.target.where()
}

// notCopied are the tables that have no counterpart in other stores, that are created from
// others, or that are copied in a way of their own.
var notCopied = []string{versionTable, markTable, "owner", "facts", "events", "purges", "docs", "indexed"}

const sqlColumns = `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod)
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
	WHERE n.nspname = $1 AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"`

// readColumns reads which tables and columns there are.
func (t *Transfer) readColumns(ctx context.Context) error {
	t.types = map[string]string{}
	return t.query(ctx, func(r pgx.Rows) error {
		var table, column, kind string
		if err := r.Scan(&table, &column, &kind); err != nil {
			return err
		}
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
		t.types[table+"."+column] = kind
		return nil
	}, sqlColumns, t.target.schema)
}

func (t *Transfer) query(ctx context.Context, row func(pgx.Rows) error, statement string, args ...any) error {
	err := queryRows(ctx, t.conn, row, statement, args...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return unread(err)
}

// Tables implements [store.TransferSide].
func (t *Transfer) Tables(context.Context) ([]store.TransferTable, error) { return t.tables, nil }

// NextGen implements [store.TransferSide].
func (t *Transfer) NextGen(ctx context.Context, gen int64, n int) (int64, error) {
	err := t.query(ctx, func(r pgx.Rows) error { return r.Scan(&gen) },
		`SELECT coalesce(max(gen), $1) FROM (SELECT gen FROM sessions WHERE gen > $1 ORDER BY gen LIMIT $2) AS next`, gen, n)
	return gen, err
}

// CountEvents implements [store.TransferSide].
func (t *Transfer) CountEvents(ctx context.Context) (n int64, err error) {
	err = t.query(ctx, func(r pgx.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM events WHERE session NOT IN (SELECT session FROM purges)`)
	return n, err
}

// Rows implements [store.TransferSide].
func (t *Transfer) Rows(ctx context.Context, table store.TransferTable, after, last int64) iter.Seq2[store.TransferRow, error] {
	statement, args := selectAll(table), []any(nil)
	if table.Key != "" {
		key := pgx.Identifier{table.Key}.Sanitize()
		statement += ` WHERE ` + key + ` > $1 AND ` + key + ` <= $2 AND ` + key + ` NOT IN (SELECT session FROM purges)`
		args = []any{after, last}
	}
	return func(yield func(store.TransferRow, error) bool) {
		err := t.query(ctx, func(r pgx.Rows) error {
			values, err := r.Values()
			if err != nil {
				return &dbError{err}
			}
			for i, v := range values {
				if values[i], err = neutral(v); err != nil {
					return err
				}
			}
			if !yield(values, nil) {
				return errStop
			}
			return nil
		}, statement, args...)
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// errStop ends a query early.
var errStop = errors.New("stop")

func selectAll(table store.TransferTable) string {
	list := ""
	for i, c := range table.Columns {
		if i > 0 {
			list += ", "
		}
		list += pgx.Identifier{c}.Sanitize()
	}
	return `SELECT ` + list + ` FROM ` + pgx.Identifier{table.Name}.Sanitize()
}

// neutral returns a value of a column as a [store.TransferRow] has it.
func neutral(v any) (any, error) {
	switch v := v.(type) {
	case nil, int64, float64:
		return v, nil
	case string:
		return original(v), nil
	case []byte:
		return string(v), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	}
	return nil, tapedeck.Errorf(tapedeck.Internal, "a column has the type %T, which `tapedeck migrate` cannot copy", v)
}

// eventsAtOnce is how many events one query reads. A query for all of them might sort them
// on the disk of the database first.
const eventsAtOnce = 2000

const sqlEventsAfter = `SELECT session, "offset", event, sum FROM events
	WHERE (session, "offset") > ($1, $2) AND session NOT IN (SELECT session FROM purges) ORDER BY session, "offset" LIMIT $3`

// Events implements [store.TransferSide].
func (t *Transfer) Events(ctx context.Context, gen, offset int64) iter.Seq2[store.TransferEvent, error] {
	return func(yield func(store.TransferEvent, error) bool) {
		for {
			n := 0
			err := t.query(ctx, func(r pgx.Rows) error {
				var e store.TransferEvent
				if err := r.Scan(&e.Gen, &e.Offset, &e.Data, &e.Sum); err != nil {
					return &dbError{err}
				}
				n++
				if gen, offset = e.Gen, e.Offset; !yield(e, nil) {
					return errStop
				}
				return nil
			}, sqlEventsAfter, gen, offset, eventsAtOnce)
			switch {
			case errors.Is(err, errStop):
				return
			case err != nil:
				yield(store.TransferEvent{}, err)
				return
			case n < eventsAtOnce:
				return
			}
		}
	}
}

// Facts implements [store.TransferSource].
func (t *Transfer) Facts(ctx context.Context) (f store.TransferFacts, err error) {
	err = t.query(ctx, func(r pgx.Rows) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		switch name {
		case "gen":
			f.Gen = value
		case "clean":
			f.Clean = value != 0
		case "erased":
			f.Erased = value
		case "cleaned":
			f.Cleaned = value
		}
		return err
	}, sqlFacts)
	return f, err
}

// Verify implements [store.TransferSource].
func (t *Transfer) Verify(ctx context.Context, progress func(done, total int64)) (store.Report, error) {
	c, err := t.target.connect(ctx, "verify")
	if err != nil {
		return store.Report{}, plain(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return verify(ctx, c, progress)
}
