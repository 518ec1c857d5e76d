package deck

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// tailBytes limits the memory in bytes for the newest events of all sessions.
const tailBytes = 64 << 20

// storage is a store with its search index, its subscriptions, the push notification
// configs of tasks, and the diagrams of workflows.
type storage struct {
	store    tapedeck.Store
	index    documents
	subs     subscription.Store
	pushes   push.Store
	diagrams workflow.Store
	writable func(context.Context) error // returns why the store cannot be written now, nil if it can
}

// documents is the search index of a store.
type documents interface {
	Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error)
	Index(ctx context.Context, in search.Batch) error
	Search(ctx context.Context, q search.Query) (search.Result, error)
	Forget(ctx context.Context, session string) error
	Clean(ctx context.Context) error
}

func (d *Deck) openStore(ctx context.Context, dir string) (storage, error) {
	o := &d.options
	var s storage
	if o.InMemory {
		m := memory.New(memory.Options{})
		index, err := m.OpenIndex()
		s.store, s.index, s.writable = m, index, func(context.Context) error { return nil }
		s.subs, s.pushes, s.diagrams = m.Subscriptions(), m.PushConfigs(), m.Workflows()
		return s, err
	}
	if o.Postgres != nil {
		return d.openPostgres(ctx, dir)
	}
	db, err := sqlite.Open(ctx, dir, sqlite.Options{
		Lock: o.Lock, Logger: o.Logger, OnLost: func(err error) { d.lost <- err },
	})
	if err != nil {
		return s, err
	}
	index, err := db.OpenIndex()
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	s.store, s.index, s.writable = tail.New(tailBytes).Layer(db), index, db.Writable
	s.subs, s.pushes, s.diagrams = db.Subscriptions(), db.PushConfigs(), db.Workflows()
	return s, nil
}

// openPostgres opens a store in PostgreSQL. The folder dir has only keys then, and the
// folders of agents; its lock keeps other decks from it all the same.
func (d *Deck) openPostgres(ctx context.Context, dir string) (s storage, err error) {
	lock := d.options.Lock
	if lock == nil {
		if lock, err = sqlite.TakeLock(dir); err != nil {
			return s, err
		}
	}
	o := *d.options.Postgres
	o.Logger, o.OnLost = d.options.Logger, func(err error) { d.lost <- err }
	db, err := postgres.Open(ctx, o)
	if err != nil {
		lock.Release()
		return s, err
	}
	index, err := db.OpenIndex()
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	s.store = &locked{tail.New(tailBytes).Layer(db), lock}
	s.index, s.writable = index, db.Writable
	s.subs, s.pushes, s.diagrams = db.Subscriptions(), db.PushConfigs(), db.Workflows()
	return s, nil
}

// A locked store releases the lock of the data folder when it closes.
type locked struct {
	tapedeck.Store
	lock *sqlite.Lock
}

// Close implements [tapedeck.Store].
func (s *locked) Close() error {
	defer s.lock.Release()
	return s.Store.Close()
}
