package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	deckclient "github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// Goals of appends over WebSockets that do not wait for their answers.
const (
	goalOverRival = 5.0    // one socket, compared with one connection to the reference server in memory
	goalSocket    = 60_000 // events per second of one socket
	goalOverStore = 0.6    // 64 sockets, compared with 64 goroutines that use the store directly
	goalAck       = 10.0   // ms, p99 of an acknowledgement at half of the rate of one socket
)

const socketRow = "sockets: "

// measureSockets measures the writer of package client against the program.
func measureSockets(ctx context.Context, o options, r *report) error {
	if !r.wants(socketRow) {
		return nil
	}
	var one, many, direct, rivals, costs []float64
	for range o.rounds {
		x, err := socketRound(ctx, o)
		if err != nil {
			return err
		}
		one, many, direct, rivals, costs = append(one, x[0]), append(many, x[1]), append(direct, x[2]), append(rivals, x[3]), append(costs, x[4])
	}
	rate, base := quantile(one, .5), quantile(rivals, .5)
	r.alone(socketRow+"1 connection, events of 256 B, durable", fmt.Sprintf("%.0f events/s %s", rate, spread(one)),
		fmt.Sprintf("≥ %d", goalSocket), rate >= goalSocket)
	r.alone("… server CPU per event", fmt.Sprintf("%.1f µs", quantile(costs, .5)), "", true)
	r.alone("… compared with 1 connection to the reference server in memory", fmt.Sprintf("%.1f× (%.0f appends/s)", rate/base, base),
		fmt.Sprintf("≥ %.0f×", goalOverRival), rate >= goalOverRival*base)
	all, store := quantile(many, .5), quantile(direct, .5)
	r.alone("… 64 connections, compared with 64 goroutines on the store", fmt.Sprintf("%.2f× (%.0f and %.0f events/s)", all/store, all, store),
		fmt.Sprintf("≥ %.1f×", goalOverStore), all >= goalOverStore*store)
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	lat, err := pacedWrites(ctx, p, int(rate/2), o.length)
	if err != nil {
		return err
	}
	p99 := quantile(lat, .99)
	r.alone("… time to the acknowledgement at half of that rate, p50 and p99", fmt.Sprintf("%.1f ms, %.1f ms", quantile(lat, .5), p99),
		fmt.Sprintf("≤ %.0f ms", goalAck), p99 <= goalAck)
	if lat, err = pacedFile(int(rate/2), o.length); err != nil {
		return err
	}
	r.alone("… the least that this machine allows: the same bytes at the same rate, to the start of one file, one fsync for all that has come together",
		fmt.Sprintf("%.1f ms, %.1f ms", quantile(lat, .5), quantile(lat, .99)), "", true)
	return nil
}

// pacedFile writes the bytes of events at a rate to a file, as [byteFile] does, and
// returns the times until they are synced, in milliseconds.
func pacedFile(rate int, length time.Duration) ([]float64, error) {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b, err := newByteFile(filepath.Join(dir, "file"))
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var lat []float64
	var first error
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent := 0
	for begin := time.Now(); time.Since(begin) < length; <-tick.C {
		n := int(time.Since(begin).Seconds()*float64(rate)) - sent
		sent += n
		wg.Go(func() {
			began := time.Now()
			err := b.append(make([]byte, n*len(smallEvent.Data)))
			mu.Lock()
			defer mu.Unlock()
			first = cmp.Or(first, err)
			for range n {
				lat = append(lat, ms(time.Since(began)))
			}
		})
	}
	wg.Wait()
	return lat, errors.Join(first, b.close())
}

// socketRound measures, one after the other: one socket, 64 sockets, the store alone, the
// reference server; and the processor time of the server for an event of the first, in
// microseconds.
func socketRound(ctx context.Context, o options) (x [5]float64, err error) {
	p, err := ours(ctx, o.bin)
	if err != nil {
		return x, err
	}
	defer p.stop()
	used := p.cpu()
	for i, n := range []int{1, 64} {
		if i == 1 {
			x[4] = (p.cpu() - used) / (x[0] * o.length.Seconds()) * 1e6
		}
		if x[i], err = socketWrites(ctx, p, n, o.length); err != nil {
			return x, err
		}
	}
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return x, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return x, err
	}
	defer s.Close()
	if x[2], err = appendRate(ctx, logOf(s), sample(), 64, 1, o.length); err != nil {
		return x, err
	}
	other, err := rival(ctx, false)
	if err != nil {
		return x, err
	}
	defer other.stop()
	single, err := appends(other, postLean, 1, o.length)
	x[3] = single.rate
	fmt.Fprintf(os.Stderr, "%s%.0f %.0f %.0f %.0f, %.1f µs\n", socketRow, x[0], x[1], x[2], x[3], x[4])
	return x, err
}

// smallEvent has 256 bytes of data.
var smallEvent = tapedeck.Event{Type: "bench.said", Data: json.RawMessage(`{"text":"` + strings.Repeat("x", 256-len(`{"text":""}`)) + `"}`)}

// socketWrites writes with n writers, each to a session of its own, and returns the number
// of events that were acknowledged in a second.
func socketWrites(ctx context.Context, p *process, n int, length time.Duration) (float64, error) {
	c, err := deckclient.New(p.URL)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	errs := make([]error, n)
	var acked atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range n {
		s, err := c.Create(ctx, api.NewSession{})
		if err != nil {
			return 0, err
		}
		w := c.NewWriter(ctx, s.ID, deckclient.WriterOptions{OnDone: func(_ int64, _ tapedeck.Appended, err error) {
			if err == nil {
				acked.Add(1)
			}
		}})
		wg.Go(func() {
			for time.Since(begin) < length && errs[i] == nil {
				_, errs[i] = w.Append(ctx, smallEvent)
			}
			if err := w.Close(ctx); errs[i] == nil {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(acked.Load()) / took, nil
}

// pacedWrites writes at a rate and returns the times from the call of Append to the
// acknowledgement, in milliseconds.
func pacedWrites(ctx context.Context, p *process, rate int, length time.Duration) ([]float64, error) {
	c, err := deckclient.New(p.URL)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := c.Create(ctx, api.NewSession{})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var began []time.Time
	var lat []float64
	w := c.NewWriter(ctx, s.ID, deckclient.WriterOptions{OnDone: func(seq int64, _ tapedeck.Appended, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			lat = append(lat, ms(time.Since(began[seq])))
		}
	}})
	began = append(began, time.Now())
	if _, err := w.Append(ctx, smallEvent); err != nil {
		return nil, err
	}
	if err := w.Flush(ctx); err != nil { // it is connected now
		return nil, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent := 0
	for begin := time.Now(); time.Since(begin) < length; <-tick.C {
		for due := int(time.Since(begin).Seconds() * float64(rate)); sent < due; sent++ {
			mu.Lock()
			began = append(began, time.Now())
			mu.Unlock()
			if _, err := w.Append(ctx, smallEvent); err != nil {
				return nil, err
			}
		}
	}
	return lat, w.Close(ctx)
}
