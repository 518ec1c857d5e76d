package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// schemas are those of the shared cluster that no test uses now. To empty the tables is
// much quicker than to create them.
var schemas struct {
	sync.Mutex
	free  []string
	count int
}

// place returns the URL of a schema of its own in the shared cluster.
func place(t testing.TB) string {
	t.Helper()
	c := pgtest.Shared(t)
	schemas.Lock()
	defer schemas.Unlock()
	var name string
	if n := len(schemas.free); n > 0 {
		name, schemas.free = schemas.free[n-1], schemas.free[:n-1]
	} else {
		schemas.count++
		name = fmt.Sprintf("s%d", schemas.count)
	}
	t.Cleanup(func() {
		if err := c.Exec("postgres", "SET search_path = "+name, emptyTables); err == nil { // otherwise it has no tables
			schemas.Lock()
			defer schemas.Unlock()
			schemas.free = append(schemas.free, name)
		}
	})
	return inSchema(c.URL("postgres"), name)
}

// emptyTables makes a schema as the migrations leave it.
const emptyTables = `DELETE FROM sessions; DELETE FROM heads; DELETE FROM events; DELETE FROM lineage; DELETE FROM producers;
	DELETE FROM purges; DELETE FROM docs; DELETE FROM indexed; DELETE FROM subscriptions; DELETE FROM acks; DELETE FROM push_configs; DELETE FROM workflows; DELETE FROM spending;
	UPDATE facts SET value = CASE name WHEN 'clean' THEN 1 ELSE 0 END;
	UPDATE owner SET epoch = 0, name = '', until = to_timestamp(0), commits = 0`

func inSchema(address, schema string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestStore(t *testing.T) {
	storetest.Quick(t, 8) // each takes half a second here
	storetest.Run(t, suite(postgres.Options{}))
}

// TestStoreWithoutMemory runs the part of the suite about what is stored, with a store that
// keeps the state of one session in memory, so that it must read from the database.
func TestStoreWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as TestStore, and nearly all of it is the same")
	}
	storetest.Quick(t, 5)
	storetest.RunReopened(t, suite(postgres.Options{HotSessions: 1, Readers: 1}))
}

func TestSubscriptions(t *testing.T) {
	storetest.RunSubscriptions(t, suite(postgres.Options{}), func(s tapedeck.Store) storetest.Subscriptions { return s.(*postgres.Store).Subscriptions() })
}

func TestPushConfigs(t *testing.T) {
	storetest.RunPushConfigs(t, suite(postgres.Options{}), func(s tapedeck.Store) storetest.PushConfigs { return s.(*postgres.Store).PushConfigs() })
}

func TestIndex(t *testing.T) {
	storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
		clock := storetest.NewClock()
		s := open(t, postgres.Options{URL: place(t), Now: clock.Now})
		x, err := s.OpenIndex()
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Store{Store: s, Clock: clock}, x
	})
}

func suite(o postgres.Options) func(testing.TB) storetest.Store {
	return func(t testing.TB) storetest.Store {
		clock, o := storetest.NewClock(), o
		var fail atomic.Bool
		o.URL, o.Now = place(t), clock.Now
		o.Commit = func(commit func() error) error {
			if fail.Load() {
				return errors.New("the commit fails")
			}
			return commit()
		}
		s := open(t, o)
		return storetest.Store{
			Store: s,
			Clock: clock,
			Reopen: func(t testing.TB) tapedeck.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, o)
				return s
			},
			FailCommits: fail.Store,
		}
	}
}

func TestWorkflows(t *testing.T) {
	storetest.RunWorkflows(t, suite(postgres.Options{}), func(s tapedeck.Store) storetest.Workflows { return s.(*postgres.Store).Workflows() })
}

func TestSpending(t *testing.T) {
	storetest.RunSpending(t, suite(postgres.Options{}), func(s tapedeck.Store) storetest.Spending { return s.(*postgres.Store).Spending() })
}

// TestMigrationNames: a migration has the same number and name in every store.
func TestMigrationNames(t *testing.T) {
	names := func(folder string) (out []string) {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out = append(out, f.Name())
		}
		return out
	}
	if d := cmp.Diff(names("../sqlite/migration"), names("migration")); d != "" {
		t.Errorf("(-sqlite +postgres)\n%s", d)
	}
}
