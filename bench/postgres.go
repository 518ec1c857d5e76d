package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// measurePostgres measures the PostgreSQL store directly, without HTTP, beside one
// connection that writes the same rows in batches of the size of its commits, and does
// nothing else: the limit of every design that stores a row for each event.
func measurePostgres(ctx context.Context, o options, r *report) error {
	if !r.wants("postgres: ") {
		return nil
	}
	c, err := pgtest.Start("fsync=on", "full_page_writes=on", "shared_buffers=1GB", "max_wal_size=8GB")
	if errors.Is(err, pgtest.ErrMissing) {
		r.note("PostgreSQL was not measured: " + err.Error() + ".")
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Stop()
	s, err := postgres.Open(ctx, postgres.Options{URL: c.URL("postgres")})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	to := log{append: s.Append, create: func(ctx context.Context, id string) error {
		_, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession})
		return err
	}}
	for _, w := range []struct{ writers, batch int }{{1, 1}, {64, 1}, {64, 10}} {
		var ours, plain []float64
		for range 3 { // in turns, because other programs take a part of the machine
			rate, err := appendRate(ctx, to, sample(), w.writers, w.batch, o.length)
			if err != nil {
				return err
			}
			limit, err := insertRate(ctx, c.URL("postgres"), w.writers, w.batch, o.length)
			if err != nil {
				return err
			}
			ours, plain = append(ours, rate), append(plain, limit)
		}
		mine, limit := quantile(ours, .5), quantile(plain, .5)
		r.alone(fmt.Sprintf("postgres: %d goroutines, %d events per append, 330 B each, compared with batched INSERTs", w.writers, w.batch),
			fmt.Sprintf("%.2f× (%.0f events/s; INSERTs %.0f)", mine/limit, mine, limit), "≥ 0.7×", mine >= .7*limit)
	}
	return measurePostgresLength(ctx, s, r)
}

const insertTable = `CREATE TABLE IF NOT EXISTS plain (session bigint NOT NULL, "offset" bigint NOT NULL, event bytea NOT NULL, PRIMARY KEY (session, "offset"))`

// insertRate measures one connection that inserts an append of each writer at a time.
func insertRate(ctx context.Context, url string, writers, batch int, length time.Duration) (float64, error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, statement := range [...]string{insertTable, "TRUNCATE plain"} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	_, drafts, err := tapedeck.Drafts([]tapedeck.Event{sample()}, nil, time.Now())
	if err != nil {
		return 0, err
	}
	n := writers * batch
	sessions, offsets, events := make([]int64, n), make([]int64, n), make([][]byte, n)
	total := 0
	begin := time.Now()
	for round := int64(0); time.Since(begin) < length; round++ {
		for i := range n {
			sessions[i], offsets[i] = int64(i/batch), round*int64(batch)+int64(i%batch)
			events[i] = drafts[0].Record(offsets[i]).Data
		}
		if _, err := c.Exec(ctx, `INSERT INTO plain SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])`, sessions, offsets, events); err != nil {
			return 0, err
		}
		total += n
	}
	return float64(total) / time.Since(begin).Seconds(), nil
}

// measurePostgresLength compares a long session with a short one.
func measurePostgresLength(ctx context.Context, s *postgres.Store, r *report) error {
	parents := []string{"ten", "million"}
	for i, events := range []int{10, 1_000_000} {
		if err := fillSession(ctx, s, parents[i], events); err != nil {
			return err
		}
	}
	var reads, forks [2][]float64
	for n := range 100 {
		for i, id := range parents {
			begin := time.Now()
			p, err := s.Read(ctx, id, tapedeck.Range{From: -1, Limit: 10, Reverse: true})
			if err != nil || len(p.Records) != 10 {
				return errors.Join(err, fmt.Errorf("read %d of the last 10 events", len(p.Records)))
			}
			reads[i] = append(reads[i], ms(time.Since(begin)))
			begin = time.Now()
			if _, err := s.Create(ctx, tapedeck.Spec{ID: fmt.Sprintf("fork_%s_%d", id, n), Parent: id}); err != nil {
				return err
			}
			forks[i] = append(forks[i], ms(time.Since(begin)))
		}
	}
	for _, x := range []struct {
		name string
		took [2][]float64
	}{{"read the last 10 of", reads}, {"fork of a session of", forks}} {
		short, long := quantile(x.took[0], .5), quantile(x.took[1], .5)
		r.alone(fmt.Sprintf("postgres: %s 1,000,000 events, compared with 10", x.name), fmt.Sprintf("%.2f× (%.2f ms)", long/short, long), "≤ 1.5×", long <= 1.5*short)
	}
	begin := time.Now()
	total := 0
	for from := int64(0); ; {
		p, err := s.Read(ctx, "million", tapedeck.Range{From: from})
		if err != nil {
			return err
		}
		total += len(p.Records)
		if from = p.Next; p.CaughtUp() {
			break
		}
	}
	r.alone("postgres: read 1,000,000 events in pages of 1,000", fmt.Sprintf("%.0f events/s", float64(total)/time.Since(begin).Seconds()), "", true)
	return nil
}
