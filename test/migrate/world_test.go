package migrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		child()
		return
	}
	_ = flag.Set("rapid.checks", "5") // each of them copies several times; a flag of the command line wins
	pgtest.Main(m)
}

// schemas are those of the shared cluster that no test uses now.
var schemas struct {
	sync.Mutex
	free  []string
	count int
}

// database returns the URL of an empty schema in the shared cluster.
func database(t testing.TB) string {
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
	t.Cleanup(func() { emptied(t, name) })
	return inSchema(c.URL("postgres"), name)
}

// emptied makes a schema as the migrations leave it, and keeps it for other tests.
func emptied(t testing.TB, name string) {
	err := pgtest.Shared(t).Exec("postgres", "SET search_path = "+name,
		`TRUNCATE sessions, heads, events, lineage, producers, purges, docs, indexed, subscriptions, acks, push_configs, workflows, spending`,
		`UPDATE facts SET value = CASE name WHEN 'clean' THEN 1 ELSE 0 END`, `UPDATE owner SET epoch = 0, name = '', until = to_timestamp(0), commits = 0`,
		`DROP TABLE IF EXISTS transfer`)
	if err == nil { // otherwise it has no tables
		schemas.Lock()
		defer schemas.Unlock()
		schemas.free = append(schemas.free, name)
	}
}

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

// lease is that of the databases which this process opens; 0 is the default. A process that
// will be killed makes it short, because the next process waits for its end.
var lease time.Duration

// A site is where the data of a store is: in a folder or, if there is a URL, in a database.
type site struct{ folder, url string }

// options are the same for both kinds of stores.
type options struct {
	now    func() time.Time
	commit func(func() error) error
}

func (s site) open(t testing.TB, o options) tapedeck.Store {
	t.Helper()
	st, err := s.tryOpen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (s site) tryOpen(ctx context.Context, o options) (tapedeck.Store, error) {
	if s.url != "" {
		return postgres.Open(ctx, postgres.Options{URL: s.url, Now: o.now, Commit: o.commit, Lease: lease})
	}
	return sqlite.Open(ctx, s.folder, sqlite.Options{Now: o.now, Commit: o.commit})
}

// source and target open a site for a transfer.
func (s site) source(ctx context.Context) (store.TransferSource, func() error, error) {
	if s.url != "" {
		x, err := postgres.OpenSource(ctx, postgres.Options{URL: s.url, Lease: lease})
		if err != nil {
			return nil, nil, err
		}
		return x, x.Close, nil
	}
	x, err := sqlite.OpenSource(ctx, s.folder)
	if err != nil {
		return nil, nil, err
	}
	return x, x.Close, nil
}

func (s site) target(ctx context.Context) (store.TransferTarget, func() error, error) {
	if s.url != "" {
		x, err := postgres.OpenTarget(ctx, postgres.Options{URL: s.url, Lease: lease})
		if err != nil {
			return nil, nil, err
		}
		return x, x.Close, nil
	}
	x, err := sqlite.OpenTarget(ctx, s.folder)
	if err != nil {
		return nil, nil, err
	}
	return x, x.Close, nil
}

// transfer copies between sites. wrap, if not nil, replaces the target.
func transfer(ctx context.Context, from, to site, wrap func(store.TransferTarget) store.TransferTarget) (r store.TransferReport, err error) {
	source, closeSource, err := from.source(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	target, closeTarget, err := to.target(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	if wrap != nil {
		target = wrap(target)
	}
	return store.Transfer(ctx, source, target, nil)
}

// other returns an empty site of the other kind.
func (s site) other(t testing.TB) site {
	if s.url != "" {
		return site{folder: t.TempDir()}
	}
	return site{url: database(t)}
}

// suite returns an opener for a suite in store/storetest whose Reopen copies everything to
// a store of the other kind, and opens that.
func suite(first func(testing.TB) site) func(testing.TB) storetest.Store {
	return func(t testing.TB) storetest.Store {
		clock := storetest.NewClock()
		var fail atomic.Bool
		o := options{now: clock.Now, commit: func(commit func() error) error {
			if fail.Load() {
				return errors.New("the commit fails")
			}
			return commit()
		}}
		at := first(t)
		s := at.open(t, o)
		t.Cleanup(func() { _ = s.Close() })
		return storetest.Store{
			Store: s, Clock: clock, FailCommits: fail.Store,
			Reopen: func(t testing.TB) tapedeck.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				next := at.other(t)
				if _, err := transfer(t.Context(), at, next, nil); err != nil {
					t.Fatal(err)
				}
				at = next
				s = at.open(t, o)
				return s
			},
		}
	}
}

func folder(t testing.TB) site { return site{folder: t.TempDir()} }

func schema(t testing.TB) site { return site{url: database(t)} }
