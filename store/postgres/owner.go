package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
)

// An Owner is the server that owns a database, as the database says.
type Owner struct {
	Name    string // see [Options]
	Address string // see [Options]
	Key     []byte // the same for all servers of the database, and random

	// Left is how long its lease lasts. It is negative if the lease has run out, or was
	// given back.
	Left time.Duration
}

// A Watch looks at the owner of a database. It needs no lease and changes nothing. Its
// methods must not be called by several goroutines.
type Watch struct {
	target *target
	conn   *pgx.Conn
}

// NewWatch returns a watch of the database of o. It connects at the first look.
func NewWatch(o Options) (*Watch, error) {
	o = o.withDefaults()
	t, err := parse(&o)
	if err != nil {
		return nil, err
	}
	return &Watch{target: t}, nil
}

const (
	sqlLookAtOwner = `SELECT name, address, key, (extract(epoch FROM until - clock_timestamp()) * 1000)::bigint FROM owner`
	sqlLookAtOlder = `SELECT name, (extract(epoch FROM until - clock_timestamp()) * 1000)::bigint FROM owner`
	sqlWatches     = `SELECT count(*) FROM pg_stat_activity
	WHERE application_name = 'tapedeck watch' AND datname = current_database() AND pid <> pg_backend_pid()`
)

// Look returns the owner as of now. Tables of an older version of this program know neither
// address nor key. If there are no tables yet, the owner is the zero value.
func (w *Watch) Look(ctx context.Context) (o Owner, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if w.conn == nil || w.conn.IsClosed() {
		if w.conn, err = w.target.connect(ctx, "watch"); err != nil {
			w.conn = nil
			return Owner{}, plain(err)
		}
	}
	var key string
	var left int64
	err = w.conn.QueryRow(ctx, sqlLookAtOwner).Scan(&o.Name, &o.Address, &key, &left)
	if code(err) == codeNoColumn {
		err = w.conn.QueryRow(ctx, sqlLookAtOlder).Scan(&o.Name, &left)
	}
	switch c := code(err); {
	case c == codeNoTable || errors.Is(err, pgx.ErrNoRows):
		return Owner{}, nil
	case err != nil:
		_ = w.conn.Close(ctx)
		return Owner{}, plain(&dbError{err})
	}
	o.Key, o.Left = []byte(key), time.Duration(left)*time.Millisecond
	return o, nil
}

// Others returns how many other servers have a watch of the database, as far as its user may
// know.
func (w *Watch) Others(ctx context.Context) (n int, err error) {
	if w.conn == nil {
		return 0, nil
	}
	err = w.conn.QueryRow(ctx, sqlWatches).Scan(&n)
	return n, err
}

// Close closes the connection.
func (w *Watch) Close() {
	if w.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		_ = w.conn.Close(ctx)
	}
}

// Owns reports whether this store still owns its database. While the lease has not run
// out, by the clock of this process, that costs nothing. After that it asks the database.
// It is true if the database cannot be asked: then the store reads nothing from memory and
// can commit nothing, and says so by itself.
func (s *Store) Owns(ctx context.Context) bool {
	switch {
	case s.lost.Load() != nil || s.closed.Load():
		return false
	case s.lease.holds() || s.lease.failing():
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	if errors.Is(s.lease.confirm(ctx), errTaken) {
		s.lose()
		return false
	}
	return true
}

// askTimeout is how long PostgreSQL may take for an answer that costs it nothing.
const askTimeout = 2 * time.Second

// IsFinal reports whether an error of [Open] stays until a person changes something, such as
// that a newer version of this program uses the database.
func IsFinal(err error) bool {
	switch tapedeck.KindOf(err) {
	case tapedeck.Unsupported, tapedeck.Forbidden, tapedeck.Invalid:
		return true
	}
	return errors.Is(err, errNewer)
}

// errNewer is why tables that a newer version has written are refused.
var errNewer = errors.New("the tables are newer than the program")
