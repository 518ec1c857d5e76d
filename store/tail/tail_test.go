package tail_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
	"github.com/tapedeck/tapedeck/store/tail"
)

// TestStore runs the suite on caches of different sizes, because each size puts the
// border between cached and other records elsewhere.
func TestStore(t *testing.T) {
	storetest.Quick(t, 10) // the store below runs it in full
	for name, size := range map[string]int64{"64 MiB": 64 << 20, "64 KiB": 64 << 10, "nothing": 0} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && size != 64<<10 {
				t.Skip("takes minutes with the race detector")
			}
			t.Parallel()
			storetest.Run(t, func(t testing.TB) storetest.Store { return overSQLite(t, size) })
		})
	}
}

func overSQLite(t testing.TB, size int64) storetest.Store {
	dir, clock := t.TempDir(), storetest.NewClock()
	var fail atomic.Bool
	var s tapedeck.Store
	open := func(t testing.TB) tapedeck.Store {
		t.Helper()
		db, err := sqlite.Open(t.Context(), dir, sqlite.Options{
			Now: clock.Now, Commit: func(commit func() error) error {
				if fail.Load() {
					return errors.New("the commit fails")
				}
				return commit()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		s = tail.New(size).Layer(db)
		return s
	}
	return storetest.Store{
		Store: open(t), Clock: clock, FailCommits: fail.Store,
		Reopen: func(t testing.TB) tapedeck.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
	}
}
