package shards_test

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/shards"
	"github.com/tapedeck/tapedeck/store/storetest"
)

var overClusters = flag.Bool("clusters", false, "run the suite over three clusters of PostgreSQL, too")

// clusters are the PostgreSQL of the tests, one for each shard.
var clusters struct {
	sync.Mutex
	list    []*pgtest.Cluster
	err     error
	free    []string // schemas that no test uses now
	schemas int
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, c := range clusters.list {
		c.Stop()
	}
	os.Exit(status)
}

// addresses returns the addresses of an empty schema in each cluster.
func addresses(t testing.TB) []string {
	t.Helper()
	clusters.Lock()
	defer clusters.Unlock()
	for len(clusters.list) < count && clusters.err == nil {
		var c *pgtest.Cluster
		if c, clusters.err = pgtest.Start(); clusters.err == nil {
			clusters.list = append(clusters.list, c)
		}
	}
	switch {
	case errors.Is(clusters.err, pgtest.ErrMissing):
		t.Skip(clusters.err)
	case clusters.err != nil:
		t.Fatal(clusters.err)
	}
	if len(clusters.free) == 0 {
		clusters.schemas++
		clusters.free = append(clusters.free, fmt.Sprintf("s%d", clusters.schemas))
	}
	schema := clusters.free[len(clusters.free)-1]
	clusters.free = clusters.free[:len(clusters.free)-1]
	t.Cleanup(func() { giveBack(schema) })
	urls := make([]string, count)
	for i, c := range clusters.list {
		u, _ := url.Parse(c.URL("postgres")) // it is one
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		urls[i] = u.String()
	}
	return urls
}

// giveBack empties the tables of a schema, which is much quicker than to create them.
func giveBack(schema string) {
	clusters.Lock()
	defer clusters.Unlock()
	for _, c := range clusters.list {
		if c.Exec("postgres", "SET search_path = "+schema, emptyTables) != nil {
			return // it has no tables
		}
	}
	clusters.free = append(clusters.free, schema)
}

// emptyTables makes a schema as the migrations leave it.
const emptyTables = `DELETE FROM sessions; DELETE FROM heads; DELETE FROM events; DELETE FROM lineage; DELETE FROM producers;
	DELETE FROM purges; DELETE FROM docs; DELETE FROM indexed; DELETE FROM subscriptions; DELETE FROM acks; DELETE FROM push_configs; DELETE FROM workflows; DELETE FROM spending;
	UPDATE facts SET value = CASE name WHEN 'clean' THEN 1 ELSE 0 END;
	UPDATE owner SET epoch = 0, name = '', until = to_timestamp(0), commits = 0`

// ofPostgres opens a store of one database in each cluster.
func ofPostgres(t testing.TB, urls []string, o postgres.Options) *shards.Store {
	t.Helper()
	numbers := new(shards.Numbers)
	var list []shards.Shard
	for i, o := range o.With(urls...)[1:] {
		o.NextGen = numbers.Of(i)
		db, err := postgres.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		index, _ := db.OpenIndex() // never fails
		list = append(list, shards.Shard{
			Store: db, Index: index, Subscriptions: db.Subscriptions(), PushConfigs: db.PushConfigs(),
			Workflows: db.Workflows(), Spending: db.Spending(), Writable: db.Writable,
		})
	}
	return join(t, list, numbers)
}

func openPostgres(t testing.TB) storetest.Store {
	clock, urls := storetest.NewClock(), addresses(t)
	var fail atomic.Bool
	o := postgres.Options{Now: clock.Now, Readers: 4, Commit: func(commit func() error) error {
		if fail.Load() {
			return errors.New("the commit fails")
		}
		return commit()
	}}
	s := ofPostgres(t, urls, o)
	return storetest.Store{
		Store: s,
		Reopen: func(t testing.TB) tapedeck.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = ofPostgres(t, urls, o)
			return s
		},
		FailCommits: fail.Store,
		Clock:       clock,
	}
}

// TestPostgres runs the suite over a database in each of three clusters.
func TestPostgres(t *testing.T) {
	if !*overClusters {
		t.Skip("it takes minutes, and TestStore runs the same over stores in memory; make postgres runs it (-clusters)")
	}
	storetest.Quick(t, 5)
	t.Run("store", func(t *testing.T) { storetest.Run(t, openPostgres) })
	t.Run("subscriptions", func(t *testing.T) {
		storetest.RunSubscriptions(t, openPostgres, func(s tapedeck.Store) storetest.Subscriptions { return of(s).Subscriptions() })
	})
	t.Run("push configs", func(t *testing.T) {
		storetest.RunPushConfigs(t, openPostgres, func(s tapedeck.Store) storetest.PushConfigs { return of(s).PushConfigs() })
	})
	t.Run("workflows", func(t *testing.T) {
		storetest.RunWorkflows(t, openPostgres, func(s tapedeck.Store) storetest.Workflows { return of(s).Workflows() })
	})
	t.Run("spending", func(t *testing.T) {
		storetest.RunSpending(t, openPostgres, func(s tapedeck.Store) storetest.Spending { return of(s).Spending() })
	})
	t.Run("index", func(t *testing.T) {
		storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
			s := openPostgres(t)
			return s, of(s.Store).Index()
		})
	})
}
