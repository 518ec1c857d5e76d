// Package shards makes one store of several: each session is in one of them, which its id
// decides. It is for data that outgrows one database.
//
// A fork shares the records of its parent by reference, so it is always where its parent
// is. If its own id says another database, that one has a pointer: an empty session of
// [store.KindPointer], which names the database of the fork. Lists and searches ask all
// databases and join the answers.
//
// One server owns all the databases. docs/design/0034-several-databases.md has the reasons.
package shards

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store"
)

// A Shard is one of the stores, with everything that it keeps. Every store of the program
// has these parts; the suite in store/storetest is their contract.
type Shard struct {
	Store interface {
		tapedeck.Store
		ListPlaces(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, []store.Place, error)
		SaveTotals(ctx context.Context, of []tapedeck.Session) error
		LastGen() int64 // no session had a Gen above this when the store was opened
	}
	Index interface {
		Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error)
		Index(ctx context.Context, in search.Batch) error
		Ranked(ctx context.Context, q search.Query, skip int) ([]search.Ranked, int, error)
		Forget(ctx context.Context, session string) error
		Clean(ctx context.Context) error
	}
	Subscriptions interface {
		All(ctx context.Context) (map[string][]byte, error)
		Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error
		Delete(ctx context.Context, id string) error
		Acked(ctx context.Context, id string, gen int64) (int64, bool, error)
		Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error
	}
	PushConfigs interface {
		Active(ctx context.Context, each func(session string, gen int64, task, id string, acked int64)) error
		Of(ctx context.Context, gen int64, task string) (map[string][]byte, error)
		Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error
		Ack(ctx context.Context, gen int64, task, id string, acked int64) error
		Delete(ctx context.Context, gen int64, task, id string) error
	}
	Workflows interface {
		List(ctx context.Context) ([]store.Workflow, error)
		Versions(ctx context.Context, name string) ([]store.Workflow, error)
		Get(ctx context.Context, name, digest string) (store.Workflow, []byte, error)
		Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error
		Delete(ctx context.Context, name string) error
	}
	Spending interface {
		Of(ctx context.Context, owner, period string) (store.Spending, error)
		Grant(ctx context.Context, owner, period string, n int64) error
	}
	Writable func(context.Context) error // returns why it cannot be written now; nil for always
	Figures  func() store.Figures        // nil for none
}

// A Store is a [tapedeck.Store] of several stores.
type Store struct {
	shards    []Shard
	ids       locks
	known     pointers
	cleaner   cleaner
	observing sync.Mutex // held while observers are notified, so that it happens one commit at a time
	observers store.Observers
	closed    atomic.Bool
}

var _ tapedeck.Store = (*Store)(nil)

// New returns the store of some shards, whose sessions are numbered by numbers. Their order
// decides where a session is, so it must be the same each time. [Store.Close] closes them.
func New(list []Shard, numbers *Numbers) *Store {
	s := &Store{shards: slices.Clone(list)}
	s.cleaner.start(s)
	for i := range s.shards {
		numbers.saw(s.shards[i].Store.LastGen())
		s.shards[i].Store.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) { s.committed(commits) }})
	}
	return s
}

// Observe implements [tapedeck.Store]. Commits of one shard come in their order; there is
// no order between those of different shards.
func (s *Store) Observe(o tapedeck.Observer) {
	s.observers.Add(tapedeck.Observer{Committed: o.Committed})
	if o.Erased == nil {
		return
	}
	for i := range s.shards { // each shard repeats what fails
		s.shards[i].Store.Observe(tapedeck.Observer{Erased: o.Erased})
	}
}

// committed notifies the observers of a commit of a shard.
func (s *Store) committed(commits []tapedeck.Commit) {
	commits = withoutPointers(commits)
	if len(commits) == 0 {
		return
	}
	for j := range commits {
		if c := &commits[j]; c.Gone && c.Session.Parent != "" {
			s.cleaner.add(c.Session.ID, c.Session.Parent)
		}
	}
	s.observing.Lock()
	defer s.observing.Unlock()
	s.observers.Committed(commits)
}

// withoutPointers returns the commits without those of pointers. Nearly always that is the
// same slice.
func withoutPointers(commits []tapedeck.Commit) []tapedeck.Commit {
	for i := range commits {
		if commits[i].Session.Kind == store.KindPointer {
			kept := append([]tapedeck.Commit{}, commits[:i]...)
			for _, c := range commits[i+1:] {
				if c.Session.Kind != store.KindPointer {
					kept = append(kept, c)
				}
			}
			return kept
		}
	}
	return commits
}

// Close implements [tapedeck.Store].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cleaner.stop()
	return errors.Join(each(s, func(i int) error { return s.shards[i].Store.Close() })...)
}

// Ready returns nil if at least one shard can be read and written. A shard that is down does
// not make the others useless, and a proxy must not take the server out for it.
func (s *Store) Ready(ctx context.Context) error {
	errs := each(s, func(i int) error {
		sh := &s.shards[i]
		if sh.Writable != nil { // first: it gets an answer soon, also from a database that says nothing
			if err := sh.Writable(ctx); err != nil {
				return err
			}
		}
		_, err := sh.Store.List(ctx, tapedeck.Filter{Limit: 1})
		return err
	})
	if slices.Contains(errs, nil) {
		return nil
	}
	return errs[0]
}

// Figures adds up what the shards have.
func (s *Store) Figures() (sum store.Figures) {
	for i := range s.shards {
		if f := s.shards[i].Figures; f != nil {
			one := f()
			sum.Queue += one.Queue
			sum.Hot += one.Hot
			sum.LogBytes += one.LogBytes
			sum.DataBytes += one.DataBytes
		}
	}
	return sum
}
