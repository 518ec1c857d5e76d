package sqlite_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func open(t testing.TB, dir string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	if testing.Short() {
		storetest.Quick(t, 10)
	}
	storetest.Run(t, suite(sqlite.Options{}, 8192))
}

// TestStoreWithoutMemory runs the suite with a store that keeps the state of one
// session and the positions of three events in memory, so that it must read from the
// database.
func TestStoreWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as TestStore, and nearly all of it is the same")
	}
	storetest.Quick(t, 10)
	storetest.Run(t, suite(sqlite.Options{HotSessions: 1, Readers: 1}, 3))
}

func TestSubscriptions(t *testing.T) {
	storetest.RunSubscriptions(t, suite(sqlite.Options{}, 8192), func(s tapedeck.Store) storetest.Subscriptions { return s.(*sqlite.Store).Subscriptions() })
}

func TestPushConfigs(t *testing.T) {
	storetest.RunPushConfigs(t, suite(sqlite.Options{}, 8192), func(s tapedeck.Store) storetest.PushConfigs { return s.(*sqlite.Store).PushConfigs() })
}

func TestWorkflows(t *testing.T) {
	storetest.RunWorkflows(t, suite(sqlite.Options{}, 8192), func(s tapedeck.Store) storetest.Workflows { return s.(*sqlite.Store).Workflows() })
}

func TestSpending(t *testing.T) {
	storetest.RunSpending(t, suite(sqlite.Options{}, 8192), func(s tapedeck.Store) storetest.Spending { return s.(*sqlite.Store).Spending() })
}

func suite(o sqlite.Options, fresh int) func(testing.TB) storetest.Store {
	return func(t testing.TB) storetest.Store {
		dir, clock, o := t.TempDir(), storetest.NewClock(), o
		var fail atomic.Bool
		o.Now = clock.Now
		o.Commit = func(commit func() error) error {
			if fail.Load() {
				return errors.New("the commit fails")
			}
			return commit()
		}
		s := open(t, dir, o)
		s.KeepFresh(fresh)
		return storetest.Store{
			Store: s,
			Clock: clock,
			Reopen: func(t testing.TB) tapedeck.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, dir, o)
				s.KeepFresh(fresh)
				return s
			},
			FailCommits: fail.Store,
		}
	}
}
