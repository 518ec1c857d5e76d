// Package sqlite keeps sessions in a SQLite database in a folder of their own.
// It is the default store.
//
// One writes at a time. He takes all appends that wait at that moment, of all
// sessions, decides them in memory, writes them in one transaction, and
// acknowledges them when the disk has it: under load one fsync serves many.
// Readers have connections of their own that cannot write, and never wait for
// the writer. What is in the folder, and how to look at it with other programs,
// is described in docs/storage.md.
package sqlite

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Options of a store. The zero value is ready to use.
type Options struct {
	// OnLost is called once, in a goroutine of its own, when the data folder was
	// deleted, moved or replaced. Nothing can be written any more, and the
	// process should end.
	OnLost func(error)

	Now    func() time.Time // nil for [time.Now]
	Logger *slog.Logger     // nil for none

	Readers      int   // connections that read; 0 for 4
	HotSessions  int   // sessions whose state is kept in memory; 0 for 16,384
	CheckBelow   int64 // a database file of fewer bytes is checked when it is opened; 0 for 256 MiB, negative for never
	Lock         *Lock // of the folder, if the caller has taken it; the store releases it, also if opening fails
	AllowNetwork bool  // open a folder on a network file system, where SQLite cannot be sure of its locks

	// Commit, if not nil, is called for every commit in place of the commit
	// itself, which is its argument. It is there to make commits fail in tests.
	Commit func(commit func() error) error

	// ReapTick, if not nil, says when to delete what has expired, in place of
	// a ticker. It is there for tests.
	ReapTick <-chan time.Time
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.HotSessions <= 0 {
		o.HotSessions = 1 << 14
	}
	if o.CheckBelow == 0 {
		o.CheckBelow = 256 << 20
	}
	return o
}

// A Store is a [tapedeck.Store] in a data folder.
type Store struct {
	options   Options
	file      string
	lock      *Lock
	readers   *pool
	pauses    pauses // of readers and of those of search
	writer    *writer
	observers store.Observers
	deadlines *deadlines
	trails    *trails
	index     sync.Map // of *state by id: the sessions that were written to lately

	search atomic.Pointer[Index] // nil until it is opened

	place *place                // nil until the store is open
	lost  atomic.Pointer[error] // that place is not there any more
	tried atomic.Bool           // see Writable

	cleaning     sync.Mutex // held while the files are cleaned
	remains      remains
	unclean      int64 // erasures that an earlier process had not cleaned up after
	skipCleaning bool  // for tests: the process dies before it

	closed  atomic.Bool
	running context.Context    // of what runs in the background
	stop    context.CancelFunc // of running
	reaped  chan struct{}      // closed when the reaper has stopped
}

var _ tapedeck.Store = (*Store)(nil)

// Open opens the data folder dir, which it makes if there is none, and takes it
// for this process alone. If another process has it, or it was written by a
// newer Tapedeck, or the file in it is not ours, the error is a
// [tapedeck.Conflict] that says so.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := &Store{options: o.withDefaults(), deadlines: newDeadlines(), reaped: make(chan struct{})}
	if err := s.open(ctx, dir); err != nil {
		s.release()
		return nil, err
	}
	go s.writer.run()
	s.running, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.reaper(s.running)
	s.resumeCleaning(ctx)
	return s, nil
}

func (s *Store) open(ctx context.Context, dir string) (err error) {
	if s.file, err = makeFolder(dir, s.options.AllowNetwork); err != nil {
		return err
	}
	if s.lock = s.options.Lock; s.lock == nil {
		if s.lock, err = takeLock(dir); err != nil {
			return err
		}
	}
	if err := inspect(s.file, s.options.CheckBelow); err != nil {
		return err
	}
	if err := migrate(ctx, s.file); err != nil {
		return err
	}
	s.writer = newWriter(s)
	if err := s.writer.start(); err != nil {
		return err
	}
	if s.readers, err = newPool(s.file, s.options.Readers); err != nil {
		return unsound(s.file, err)
	}
	s.place, err = placeOf(s.file)
	return err
}

// Observe implements [tapedeck.Store].
func (s *Store) Observe(o tapedeck.Observer) { s.observers.Add(o) }

// Close implements [tapedeck.Store]. Appends that were called before are written.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	_ = s.checkPlace() // for release
	s.stop()
	<-s.reaped
	s.writer.queue.close()
	<-s.writer.ended
	err := s.writer.finish()
	s.release()
	return err
}

// release closes what open has opened. The writer's connection is the last: the
// one that closes the database moves what is in the write-ahead log into it, and
// deletes the log by its name. If the folder was lost, that name may be another
// database's; so the connections stay open until the process ends.
func (s *Store) release() {
	if s.lost.Load() == nil {
		s.disconnect()
	}
	if s.lock != nil {
		s.lock.Release()
	}
}

func (s *Store) disconnect() {
	if x := s.search.Load(); x != nil {
		x.close() // it reads the database, too
	}
	if s.readers != nil {
		s.pauses.close(s.readers)
	}
	if s.writer != nil && s.writer.conn != nil {
		if err := s.writer.conn.close(); err != nil {
			s.options.Logger.Warn("the database did not close well", "error", err)
		}
	}
}

// now returns the time in milliseconds, rounded down.
func (s *Store) now() int64 { return s.options.Now().UnixMilli() }
