package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/shards"
)

// measureDatabases measures a store over three PostgreSQL beside a store in one of them, in
// turns.
func measureDatabases(ctx context.Context, o options, r *report) error {
	if !r.wants("databases: ") {
		return nil
	}
	var urls []string
	for range 3 {
		c, err := pgtest.Start("fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB")
		if errors.Is(err, pgtest.ErrMissing) {
			r.note("Several databases were not measured: " + err.Error() + ".")
			return nil
		}
		if err != nil {
			return err
		}
		defer c.Stop()
		urls = append(urls, c.URL("postgres"))
	}
	one, err := postgres.Open(ctx, postgres.Options{URL: urls[0] + "&search_path=alone"})
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	three, err := joinDatabases(ctx, urls)
	if err != nil {
		return err
	}
	defer func() { _ = three.Close() }()
	stores := []tapedeck.Store{one, three}
	var rates [2][]float64
	for range 3 {
		for i, s := range stores {
			create := func(ctx context.Context, id string) error {
				_, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession})
				return err
			}
			rate, err := appendRate(ctx, log{append: s.Append, create: create}, sample(), 64, 1, o.length)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate)
		}
	}
	a, b := quantile(rates[1], .5), quantile(rates[0], .5)
	r.alone("databases: 64 goroutines, 1 event per append, 330 B each, three PostgreSQL compared with one, on this machine", fmt.Sprintf("%.2f× (%.0f events/s; one %.0f)", a/b, a, b), "", true)
	return measureDatabaseLists(ctx, stores, r)
}

func joinDatabases(ctx context.Context, urls []string) (*shards.Store, error) {
	numbers := new(shards.Numbers)
	var list []shards.Shard
	for i, o := range (postgres.Options{}).With(urls...)[1:] {
		o.NextGen, o.Part = numbers.Of(i), &store.Part{Cluster: "bench", Number: i + 1, Of: len(urls)}
		db, err := postgres.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		list = append(list, shards.Shard{Store: db, Subscriptions: db.Subscriptions(), PushConfigs: db.PushConfigs(), Workflows: db.Workflows(), Spending: db.Spending()})
	}
	return shards.New(list, numbers), nil
}

// listed is how many sessions a list chooses from.
const listed = 100_000

// measureDatabaseLists measures a page of 50 sessions, and forks.
func measureDatabaseLists(ctx context.Context, stores []tapedeck.Store, r *report) error {
	var lists, forks [2][]float64
	for _, s := range stores {
		if err := fillCatalogue(ctx, s); err != nil {
			return err
		}
	}
	for n := range 200 {
		for i, s := range stores {
			begin := time.Now()
			if page, err := s.List(ctx, tapedeck.Filter{Limit: 50, Sort: store.SortActivity}); err != nil || len(page.Sessions) != 50 {
				return errors.Join(err, fmt.Errorf("a page has %d sessions", len(page.Sessions)))
			}
			lists[i] = append(lists[i], ms(time.Since(begin)))
			begin = time.Now()
			if _, err := s.Create(ctx, tapedeck.Spec{ID: fmt.Sprint("fork", n), Parent: "c7"}); err != nil {
				return err
			}
			forks[i] = append(forks[i], ms(time.Since(begin)))
		}
	}
	for _, x := range []struct {
		name string
		took [2][]float64
	}{{"list 50 of 100,000 sessions", lists}, {"fork", forks}} {
		one, three := quantile(x.took[0], .5), quantile(x.took[1], .5)
		r.alone("databases: "+x.name+", three compared with one", fmt.Sprintf("%.2f× (%.2f ms; p99 %.2f ms; one %.2f ms)", three/one, three, quantile(x.took[1], .99), one), "", true)
	}
	return nil
}

func fillCatalogue(ctx context.Context, s tapedeck.Store) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 128)
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil {
				n := next.Add(1)
				if n > listed {
					return
				}
				_, errs[i] = s.Create(ctx, tapedeck.Spec{ID: fmt.Sprint("c", n), Events: []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: []byte(`{"title":"A session"}`)}}})
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
