// Package sqlite keeps sessions in a SQLite database in a folder of their own.
// It is the default store.
//
// One writer at a time drains all waiting appends, of all sessions. It decides
// them in memory, writes them in one transaction, and acknowledges them when they
// are on the disk: under load one fsync serves many appends. Readers have
// connections of their own, which cannot write, and never wait for the writer.
// docs/storage.md describes the files in the folder and how to read them with
// other programs.
package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store"
)

// Options of a store. The zero value is ready to use.
type Options struct {
	// OnLost is called once, in its own goroutine, when the data folder was
	// deleted, moved or replaced. The store cannot write any more, and the
	// process should end.
	OnLost func(error)

	Now    func() time.Time // nil for [time.Now]
	Logger *slog.Logger     // nil for none

	Readers      int   // number of connections for reading; 0 for 4
	HotSessions  int   // number of sessions whose state is kept in memory; 0 for 16,384
	CheckBelow   int64 // a database file with fewer bytes is checked when it is opened; 0 for 256 MiB, negative for no check
	Lock         *Lock // the lock of the folder if the caller holds it; the store releases it, also if Open fails
	AllowNetwork bool  // open a folder on a network file system too, where locks are not reliable

	// Key is the master key, of 32 bytes. With it, new sessions are encrypted, each with a
	// key of its own in the file session-keys. A folder with such a file needs it.
	Key []byte

	// WithoutKeys opens a folder with encrypted sessions without the master key, for Verify
	// only: no event of them can be read.
	WithoutKeys bool

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
	options Options
	file    string
	lock    *Lock
	keys    *sessionkeys.File // nil: sessions are not encrypted
	erased  []string          // see findErased
	readers *pool
	pauses  pauses // of the readers, of the readers of the search index, and of checkpoints

	checkpoints *checkpointer
	writer      *writer
	observers   store.Observers
	deadlines   *deadlines
	trails      *trails
	damages     store.Damages
	index       sync.Map // *state by id: the sessions with recent writes

	search atomic.Pointer[Index] // nil until OpenIndex

	place *place                // nil until the store is open
	lost  atomic.Pointer[error] // why the folder is lost; nil while it is not
	tried atomic.Bool           // see Writable

	noHoles bool     // the file system cannot give back the space of free pages; the reaper has it
	rawFile *os.File // the database file, see raw; the writer has it, nil before it needs it

	cleaning     sync.Mutex // held while the files are being cleaned
	remains      remains
	unclean      int64 // erasures whose copies an earlier process did not remove
	skipCleaning bool  // for tests: act as if the process died before the cleaning

	closed  atomic.Bool
	running context.Context    // of the background goroutines
	stop    context.CancelFunc // of running
	reaped  chan struct{}      // closed when the reaper has stopped
}

var _ tapedeck.Store = (*Store)(nil)

// Open opens the data folder dir, creates it if it does not exist, and locks it
// for this process. The error is a [tapedeck.Conflict] if another process holds
// the folder, if a newer Tapedeck wrote it, or if its database is not a Tapedeck
// database.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := &Store{options: o.withDefaults(), deadlines: newDeadlines(), reaped: make(chan struct{})}
	if err := s.open(ctx, dir); err != nil {
		s.release()
		return nil, err
	}
	go s.writer.run()
	s.running, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.reaper(s.running)
	if err := s.removeErased(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
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
	if s.keys, err = openKeys(s.file, s.options.Key, s.options.WithoutKeys); err != nil {
		return err
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
	if s.readers, err = newPool(s.options.Readers, dataSource(s.file, "ro", readerPragmas)); err != nil {
		return unsound(s.file, err)
	}
	if s.checkpoints, err = newCheckpointer(s.file); err != nil {
		return unsound(s.file, err)
	}
	s.place, err = placeOf(s.file)
	return err
}

// Observe implements [tapedeck.Store].
func (s *Store) Observe(o tapedeck.Observer) { s.observers.Add(o) }

// Close implements [tapedeck.Store]. It writes the appends that were called before.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	_ = s.checkPlace() // so that release knows whether the folder is lost
	s.stop()
	<-s.reaped
	s.writer.queue.Close()
	<-s.writer.ended
	err := s.writer.finish()
	s.release()
	return err
}

// release closes everything that open has opened. The writer's connection is the
// last: the last connection moves the write-ahead log into the database and deletes
// the log by its name. If the folder was lost, that name may belong to another
// database, so the connections stay open until the process ends.
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
		x.close() // the index reads the database, too
	}
	if s.readers != nil {
		s.pauses.close(s.readers)
	}
	if s.checkpoints != nil {
		s.checkpoints.running.Wait()
		s.pauses.close(s.checkpoints.pool)
	}
	if s.writer != nil && s.writer.conn != nil {
		if err := s.writer.conn.close(); err != nil {
			s.options.Logger.Warn("the database could not be closed cleanly", "error", err)
		}
	}
	if s.keys != nil {
		_ = s.keys.Close() // what it has written is on the disk
	}
	if s.rawFile != nil { // after the connections, because this ends their locks
		_ = s.rawFile.Close()
	}
}

// now returns the time in milliseconds, rounded down.
func (s *Store) now() int64 { return s.options.Now().UnixMilli() }
