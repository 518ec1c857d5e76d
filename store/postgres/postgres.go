// Package postgres keeps sessions in a PostgreSQL database, for data that outgrows one
// disk or must survive the machine of the server.
//
// One server at a time owns the database, by a lease; another one can take over. Its
// writer drains all waiting appends, of all sessions. It decides them in memory, sends
// them in one transaction, and acknowledges them when PostgreSQL has committed it: under
// load one commit serves many appends. Readers have connections of their own, which
// cannot write, and never wait for the writer. docs/postgres.md is for operators.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Options of a store. The zero value connects as psql without arguments does.
type Options struct {
	// URL is the address of the database, such as postgres://user@host/database. What it
	// does not say comes from PGHOST, PGUSER, PGPASSWORD and the other variables of libpq.
	// Its search_path names the schema of the tables; without one it is [DefaultSchema].
	URL string

	// OnLost is called once, in its own goroutine, when another server has taken over.
	// The store cannot write any more, and the process should end.
	OnLost func(error)

	Now    func() time.Time // nil for [time.Now]
	Logger *slog.Logger     // nil for none

	Readers          int           // number of connections for reading; 0 for 8
	StatementTimeout time.Duration // how long PostgreSQL may work on one statement; 0 for 30 s
	HotSessions      int           // number of sessions whose state is kept in memory; 0 for 16,384

	// Lease is how long a server that does not answer stays the owner; 0 for 10 s. It is
	// renewed four times in that time.
	Lease time.Duration

	// Standby makes Open wait while another server owns the database. Without it, Open
	// waits only for a lease that is not renewed, and otherwise fails.
	Standby bool

	// Address is where other servers of this database reach this one, such as
	// http://10.0.0.1:4747. They forward requests to it while it is the owner, see [Watch].
	// "": they cannot.
	Address string

	// Name is the name of the store as the owner of the database. [NewName] makes one; use it
	// for one store only. "": a new name.
	Name string

	// NextGen returns the Gen of a new session, above last, the newest one of the database.
	// Nil for last+1. A store of several databases numbers the sessions of all of them.
	NextGen func(last int64) int64

	// Part says which of the databases of a store this one is. Nil: the only one.
	Part *store.Part

	// Measure, if not nil, is called after each group of requests. It must be quick,
	// because the writer waits for it.
	Measure func(store.Group)

	// Commit, if not nil, is called instead of each commit, with the commit as its
	// argument. Tests use it to make commits fail.
	Commit func(commit func() error) error

	// ReapTick, if not nil, replaces the ticker that starts the deletion of
	// expired sessions. Tests use it.
	ReapTick <-chan time.Time
}

// Defaults of [Options].
const (
	DefaultReaders          = 8
	DefaultStatementTimeout = 30 * time.Second
	DefaultLease            = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Readers <= 0 {
		o.Readers = DefaultReaders
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = DefaultStatementTimeout
	}
	if o.HotSessions <= 0 {
		o.HotSessions = 1 << 14
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.NextGen == nil {
		o.NextGen = func(last int64) int64 { return last + 1 }
	}
	return o
}

// A Store is a [tapedeck.Store] in a database.
type Store struct {
	options Options
	target  *target
	lease   *lease
	readers *pgxpool.Pool

	writer    *writer
	observers store.Observers
	deadlines *deadlines
	damages   store.Damages
	index     sync.Map // *state by id: the sessions with recent writes
	search    *Index
	remains   remains

	lost  atomic.Pointer[error] // why the database is lost; nil while it is not
	tried atomic.Bool           // see Writable

	lastGen int64 // see LastGen

	closed     atomic.Bool
	running    context.Context    // of the background goroutines
	stop       context.CancelFunc // of running
	background sync.WaitGroup
}

var _ tapedeck.Store = (*Store)(nil)

// Open connects to a database, creates or updates the tables, and takes the lease. The
// error is a [tapedeck.Conflict] if another server owns the database, if a newer
// Tapedeck wrote it, or if the schema has tables of something else; and others if the
// database cannot be reached or used. Then nothing has changed.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{options: o.withDefaults(), deadlines: newDeadlines()}
	s.running, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.open(ctx); err != nil {
		s.stop()
		s.background.Wait()
		s.release()
		return nil, plain(err)
	}
	go s.writer.run()
	s.background.Go(func() { s.reaper(s.running) })
	s.resumeErasures(ctx)
	return s, nil
}

// plain returns the error for users that a dbError has.
func plain(err error) error {
	var known *tapedeck.Error
	if errors.As(err, &known) {
		return known
	}
	return unread(err)
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.target, err = parse(&s.options); err != nil {
		return err
	}
	s.lease = newLease(s.target, &s.options)
	if err := s.lease.connect(ctx); err != nil {
		return err
	}
	if err := s.target.prepare(ctx, s.lease.conn); err != nil {
		return err
	}
	err = s.lease.take(ctx, s.options.Standby, func(owner string) {
		s.options.Logger.Info("another server owns the database; waiting for the end of its lease", "owner", owner)
	})
	if err != nil {
		return err
	}
	if err := s.target.update(ctx, s.lease.conn); err != nil {
		return err
	}
	if err := s.takePart(ctx); err != nil {
		return err
	}
	if err := s.lease.announce(ctx, s.options.Address); err != nil {
		return err
	}
	s.background.Go(func() { s.keepLease(s.running) })
	if s.readers, err = s.target.readers(s.running); err != nil {
		return err
	}
	s.writer = newWriter(s)
	s.search = &Index{store: s}
	return s.writer.start()
}

// Observe implements [tapedeck.Store].
func (s *Store) Observe(o tapedeck.Observer) { s.observers.Add(o) }

// LastGen returns the newest Gen of the database when it was opened: no session had one
// above it.
func (s *Store) LastGen() int64 { return s.lastGen }

// Close implements [tapedeck.Store]. It writes the appends that were called before, and
// releases the lease.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.writer.queue.Close()
	<-s.writer.ended
	err := s.writer.finish()
	s.stop()
	s.background.Wait()
	s.release()
	return err
}

// release closes everything that open has opened.
func (s *Store) release() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if s.search != nil {
		s.search.close(ctx)
	}
	if s.writer != nil {
		s.writer.hangUp()
	}
	if s.readers != nil {
		s.readers.Close()
	}
	if s.lease != nil {
		s.lease.release(ctx)
	}
}

// now returns the time in milliseconds, rounded down.
func (s *Store) now() int64 { return s.options.Now().UnixMilli() }

// limited returns a context for one statement: a little longer than the database itself
// works on it, for a connection that is cut.
func (s *Store) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.options.StatementTimeout+connectTimeout)
}

// read runs a query on a connection of a reader. A connection may have been closed by
// the database meanwhile; then another one is tried.
func (s *Store) read(ctx context.Context, row func(pgx.Rows) error, statement string, args ...any) error {
	return s.readFrom(ctx, s.readers, row, statement, args...)
}

func (s *Store) readFrom(ctx context.Context, from querier, row func(pgx.Rows) error, statement string, args ...any) error {
	for attempt := 0; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.closed.Load() || s.lost.Load() != nil {
			return s.errClosed()
		}
		began := false
		limited, cancel := s.limited(ctx)
		err := queryRows(limited, from, func(r pgx.Rows) error { began = true; return row(r) }, statement, args...)
		cancel()
		var broken *dbError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &broken) || isAnswer(err) || began || attempt > 0:
			return unread(err)
		}
		s.readers.Reset() // the others are probably broken, too
	}
}

// asker returns what runs queries of readers.
func (s *Store) asker(ctx context.Context) asker {
	return func(row func(pgx.Rows) error, statement string, args ...any) error {
		return s.read(ctx, row, statement, args...)
	}
}
