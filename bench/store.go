package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// measureStore measures the SQLite store directly, without HTTP.
func measureStore(ctx context.Context, o options, r *report) error {
	if !r.wants("store") {
		return nil
	}
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := measureDisk(dir, r); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, w := range []struct {
		writers, batch int
		goal           float64
	}{{1, 1, 5000}, {64, 1, 40_000}, {64, 10, 120_000}} {
		rate, err := appendRate(ctx, logOf(s), sample(), w.writers, w.batch, o.length)
		if err != nil {
			return err
		}
		r.alone(fmt.Sprintf("store: %d goroutines, %d events per append, 330 B each, durable", w.writers, w.batch),
			fmt.Sprintf("%.0f events/s", rate), fmt.Sprintf("≥ %.0f", w.goal), rate >= w.goal)
	}
	return measureLength(ctx, s, dir, r)
}

// measureDisk measures how long the disk needs to overwrite one page and fsync it. No
// durable append can be faster.
func measureDisk(dir string, r *report) error {
	f, err := os.Create(filepath.Join(dir, "page"))
	if err != nil {
		return err
	}
	defer f.Close()
	var took []float64
	page := make([]byte, 4096)
	for range 1000 {
		page[0]++
		begin := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		took = append(took, ms(time.Since(begin)))
	}
	r.alone("disk: a page of 4 KiB written and fsynced, p50", fmt.Sprintf("%.3f ms", quantile(took, .5)), "", true)
	return nil
}

// sample returns an event of about 330 bytes.
func sample() tapedeck.Event {
	return tapedeck.Event{
		Type: "TEXT_MESSAGE_CONTENT", Invocation: "inv_01JABCDEFGHJKMNPQRSTVWXYZ0", Actor: "agent:bench",
		Data: []byte(`{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":"` + strings.Repeat("word ", 20) + `"}`),
	}
}

// appendRate measures how many events per second writers append to sessions of their own.
// The sessions are new.
func appendRate(ctx context.Context, to log, event tapedeck.Event, writers, batch int, length time.Duration) (float64, error) {
	run := fmt.Sprintf("w%d_", time.Now().UnixNano())
	events := make([]tapedeck.Event, batch)
	for i := range events {
		events[i] = event
	}
	counts := make([]int, writers)
	errs := make([]error, writers)
	for i := range writers {
		if err := to.create(ctx, fmt.Sprint(run, i)); err != nil {
			return 0, err
		}
	}
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range writers {
		wg.Go(func() {
			for time.Since(begin) < length && errs[i] == nil {
				_, errs[i] = to.append(ctx, tapedeck.Append{Session: fmt.Sprint(run, i), Events: append([]tapedeck.Event(nil), events...)})
				counts[i] += batch
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	total := 0
	for i := range counts {
		total += counts[i]
	}
	return float64(total) / took.Seconds(), errors.Join(errs...)
}

// A log is what a measurement of appends needs.
type log struct {
	create func(ctx context.Context, id string) error
	append func(context.Context, tapedeck.Append) (tapedeck.Appended, error)
}

func logOf(s *sqlite.Store) log {
	return log{append: s.Append, create: func(ctx context.Context, id string) error {
		_, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession})
		return err
	}}
}

// measureLength compares a long session with a short one, for operations whose cost should
// not depend on the length.
func measureLength(ctx context.Context, s *sqlite.Store, dir string, r *report) error {
	for _, x := range []struct {
		id     string
		events int
	}{{"ten", 10}, {"thousand", 1000}, {"million", 1_000_000}} {
		if err := fillSession(ctx, s, x.id, x.events); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	var opens [2][]float64
	for range 7 {
		for i, x := range []struct {
			id   string
			head int64
		}{{"thousand", 1000}, {"million", 1_000_000}} {
			took, err := openAndRead(ctx, dir, x.id, x.head)
			if err != nil {
				return err
			}
			opens[i] = append(opens[i], took)
		}
	}
	ratio := quantile(opens[1], .5) / quantile(opens[0], .5)
	r.alone("store: open and read the last 100 of 1,000,000 events, compared with 1,000", fmt.Sprintf("%.2f× (%.2f ms)", ratio, quantile(opens[1], .5)), "≤ 1.5×", ratio <= 1.5)
	return measureForks(ctx, dir, r)
}

func fillSession(ctx context.Context, s tapedeck.Store, id string, events int) error {
	if _, err := s.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession}); err != nil {
		return err
	}
	for events > 0 {
		batch := make([]tapedeck.Event, min(events, 5000))
		for i := range batch {
			batch[i] = sample()
		}
		if _, err := s.Append(ctx, tapedeck.Append{Session: id, Events: batch}); err != nil {
			return err
		}
		events -= len(batch)
	}
	return nil
}

// openAndRead opens the store again and reads the last 100 events, so nothing is in memory.
func openAndRead(ctx context.Context, dir, id string, head int64) (float64, error) {
	begin := time.Now()
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	p, err := s.Read(ctx, id, tapedeck.Range{From: head - 100})
	if err == nil && (len(p.Records) != 100 || !p.CaughtUp()) {
		err = fmt.Errorf("read %d of the last 100 events of %s", len(p.Records), id)
	}
	return ms(time.Since(begin)), err
}

func measureForks(ctx context.Context, dir string, r *report) error {
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	var took [2][]float64
	for n := range 200 {
		for i, parent := range []string{"ten", "million"} {
			begin := time.Now()
			if _, err := s.Create(ctx, tapedeck.Spec{ID: fmt.Sprintf("fork_%s_%d", parent, n), Kind: tapedeck.KindSession, Parent: parent}); err != nil {
				return err
			}
			took[i] = append(took[i], ms(time.Since(begin)))
		}
	}
	ratio := quantile(took[1], .5) / quantile(took[0], .5)
	r.alone("store: fork of a session of 1,000,000 events, compared with 10", fmt.Sprintf("%.2f× (%.2f ms)", ratio, quantile(took[1], .5)), "≤ 1.5×", ratio <= 1.5)
	return nil
}
