package deck

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// tailBytes is how much memory the newest events of all sessions may take.
const tailBytes = 64 << 20

// storage is a store and what belongs to it.
type storage struct {
	store     tapedeck.Store
	index     documents
	writable  func(context.Context) error // why it cannot be written now
	observers *observers
}

// documents is the search index that belongs to a store.
type documents interface {
	Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error)
	Index(ctx context.Context, in search.Batch) error
	Search(ctx context.Context, q search.Query) (search.Result, error)
	Forget(ctx context.Context, session string) error
	Clean(ctx context.Context) error
}

// observers are told of every commit. The store is opened first and they are set
// later, because they read from it.
type observers struct {
	list atomic.Pointer[[]func([]tapedeck.Commit)]
}

func (o *observers) set(fs ...func([]tapedeck.Commit)) { o.list.Store(&fs) }

func (o *observers) committed(commits []tapedeck.Commit) {
	if fs := o.list.Load(); fs != nil {
		for _, f := range *fs {
			f(commits)
		}
	}
}

func (d *Deck) openStore(ctx context.Context, dir string) (storage, error) {
	o := &d.options
	s := storage{observers: &observers{}}
	if o.InMemory {
		m := memory.New(memory.Options{})
		index, err := m.OpenIndex()
		s.store, s.index, s.writable = m, index, func(context.Context) error { return nil }
		return s, err
	}
	cache := tail.New(tailBytes)
	db, err := sqlite.Open(ctx, dir, sqlite.Options{
		Lock: o.Lock, Logger: o.Logger,
		OnCommit: func(commits []tapedeck.Commit) {
			cache.Commit(commits) // first: a follower that is woken finds the events in it
			s.observers.committed(commits)
		},
		OnLost: func(err error) { d.lost <- err },
	})
	if err != nil {
		return s, err
	}
	index, err := db.OpenIndex()
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	s.store, s.index, s.writable = cache.Over(db), index, db.Writable
	return s, nil
}
