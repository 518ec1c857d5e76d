package shards_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/shards"
	"github.com/tapedeck/tapedeck/store/storetest"
)

// count is how many shards the tests have.
const count = 3

// ofMemory returns a shard in memory.
func ofMemory(m *memory.Store) shards.Shard {
	index, _ := m.OpenIndex() // never fails
	return shards.Shard{
		Store: m, Index: index, Subscriptions: m.Subscriptions(), PushConfigs: m.PushConfigs(),
		Workflows: m.Workflows(), Spending: m.Spending(),
	}
}

func join(t testing.TB, list []shards.Shard, numbers *shards.Numbers) *shards.Store {
	t.Helper()
	s := shards.New(list, numbers)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// open returns a store of shards in memory.
func open(t testing.TB) storetest.Store {
	var fail atomic.Bool
	clock := storetest.NewClock()
	var numbers atomic.Pointer[shards.Numbers] // a store that is opened again has new ones
	numbers.Store(new(shards.Numbers))
	memories := make([]*memory.Store, count)
	list := make([]shards.Shard, count)
	for i := range list {
		memories[i] = memory.New(memory.Options{Now: clock.Now, NextGen: func(last int64) int64 { return numbers.Load().Of(i)(last) }, FailCommit: func() error {
			if fail.Load() {
				return errors.New("disk full")
			}
			return nil
		}})
		list[i] = ofMemory(memories[i])
	}
	s := join(t, list, numbers.Load())
	return storetest.Store{
		Store: s,
		Reopen: func(t testing.TB) tapedeck.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for i := range memories {
				memories[i] = memory.Reopen(memories[i])
				list[i] = ofMemory(memories[i])
			}
			numbers.Store(new(shards.Numbers))
			s = join(t, list, numbers.Load())
			return s
		},
		FailCommits: fail.Store,
		Clock:       clock,
	}
}

func of(s tapedeck.Store) *shards.Store { return s.(*shards.Store) }

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestSubscriptions(t *testing.T) {
	storetest.RunSubscriptions(t, open, func(s tapedeck.Store) storetest.Subscriptions { return of(s).Subscriptions() })
}

func TestPushConfigs(t *testing.T) {
	storetest.RunPushConfigs(t, open, func(s tapedeck.Store) storetest.PushConfigs { return of(s).PushConfigs() })
}

func TestWorkflows(t *testing.T) {
	storetest.RunWorkflows(t, open, func(s tapedeck.Store) storetest.Workflows { return of(s).Workflows() })
}

func TestSpending(t *testing.T) {
	storetest.RunSpending(t, open, func(s tapedeck.Store) storetest.Spending { return of(s).Spending() })
}

func TestIndex(t *testing.T) {
	storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
		s := open(t)
		return s, of(s.Store).Index()
	})
}
