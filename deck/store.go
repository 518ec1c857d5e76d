package deck

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/projection"
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
// configs of tasks, the diagrams of workflows, and the spending of owners.
type storage struct {
	store    tapedeck.Store
	index    documents
	subs     subscription.Store
	pushes   push.Store
	diagrams workflow.Store
	spending engine.Spending
	totals   projection.TotalsStore
	figures  func() api.StoreStats
	owns     func(context.Context) bool  // see [postgres.Store.Owns]; nil if no other server can take over
	ready    func(context.Context) error // returns why the store cannot be read and written now, nil if it can
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
	if o.EncryptionKey != nil && (o.InMemory || o.Postgres != nil) {
		return s, tapedeck.Errorf(tapedeck.Invalid, "only sessions in a data folder can be encrypted, not those in memory or in PostgreSQL").
			WithHint("leave out the encryption key")
	}
	if o.InMemory {
		m := memory.New(memory.Options{})
		index, err := m.OpenIndex()
		s.store, s.index, s.ready = m, index, readyIf(m, func(context.Context) error { return nil })
		s.subs, s.pushes, s.diagrams, s.totals, s.spending = m.Subscriptions(), m.PushConfigs(), m.Workflows(), m, m.Spending()
		s.figures = func() api.StoreStats { return api.StoreStats{Kind: "memory"} }
		return s, err
	}
	if o.Postgres != nil {
		return d.openPostgres(ctx, dir)
	}
	db, err := sqlite.Open(ctx, dir, sqlite.Options{
		Lock: o.Lock, Logger: o.Logger, Key: o.EncryptionKey, OnLost: func(err error) { d.lost <- err }, Measure: d.measure(),
	})
	if err != nil {
		return s, err
	}
	index, err := db.OpenIndex()
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	recent := tail.New(tailBytes)
	s.store, s.index = recent.Layer(db), index
	s.ready = readyIf(s.store, db.Writable)
	s.figures = func() api.StoreStats { return storeStats("sqlite", db.Figures(), recent) }
	s.subs, s.pushes, s.diagrams, s.totals, s.spending = db.Subscriptions(), db.PushConfigs(), db.Workflows(), db, db.Spending()
	return s, nil
}

// openPostgres opens a store in PostgreSQL. The folder dir has only keys then, and the
// folders of agents; its lock keeps other decks from it all the same.
func (d *Deck) openPostgres(ctx context.Context, dir string) (s storage, err error) {
	lock := d.options.Lock
	if d.options.member != nil {
		lock = nil // the member keeps it
	} else if lock == nil {
		if lock, err = sqlite.TakeLock(dir); err != nil {
			return s, err
		}
	}
	if len(d.options.MorePostgres) > 0 {
		if s, err = d.openDatabases(ctx); err != nil {
			release(lock)
			return s, err
		}
		s.store = &locked{s.store, lock}
		return s, nil
	}
	o := *d.options.Postgres
	o.Logger, o.OnLost, o.Measure = d.options.Logger, func(err error) { d.lost <- err }, d.measure()
	db, err := postgres.Open(ctx, o)
	if err != nil {
		release(lock)
		return s, err
	}
	index, err := db.OpenIndex()
	if err != nil {
		return s, errors.Join(err, db.Close())
	}
	recent := tail.New(tailBytes)
	s.store = &locked{recent.Layer(db), lock}
	s.figures = func() api.StoreStats { return storeStats("postgres", db.Figures(), recent) }
	s.index, s.ready, s.owns = index, readyIf(s.store, db.Writable), db.Owns
	s.subs, s.pushes, s.diagrams, s.totals, s.spending = db.Subscriptions(), db.PushConfigs(), db.Workflows(), db, db.Spending()
	return s, nil
}

// A locked store releases the lock of the data folder, if it has one, when it closes.
type locked struct {
	tapedeck.Store
	lock *sqlite.Lock
}

// Close implements [tapedeck.Store].
func (s *locked) Close() error {
	defer release(s.lock)
	return s.Store.Close()
}

// readyIf returns what reports whether a store can be written and read. The first question is
// the one that gets an answer soon, also from a database that says nothing.
func readyIf(s tapedeck.Store, writable func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := writable(ctx); err != nil {
			return err
		}
		_, err := s.List(ctx, tapedeck.Filter{Limit: 1})
		return err
	}
}

func release(l *sqlite.Lock) {
	if l != nil {
		l.Release()
	}
}
