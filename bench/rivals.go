package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// A row compares one figure of the two servers.
type row struct {
	name   string
	unit   string
	figure func(result) float64
	floor  float64 // the goal of the ratio, ours divided by the reference server's; 0 for no goal
	atMost bool    // the goal is an upper limit
}

// A load is run on both servers in turn.
type load struct {
	file bool // the reference server stores its streams in files
	lean int  // number of connections if the load is appends by postLean; otherwise 0
	run  func(context.Context, *process) (result, error)
	rows []row
}

func rate(r result) float64  { return r.rate }
func p50(r result) float64   { return r.p50 }
func p99(r result) float64   { return r.p99 }
func cores(r result) float64 { return r.cores }
func cost(r result) float64  { return r.cost }

func generated(r result) float64 { return r.load }

func loads(o options) []load {
	return []load{
		{lean: 64, run: func(_ context.Context, p *process) (result, error) { return appends(p, postLean, 64, o.length) }, rows: []row{
			{"appends of 256 B, 64 connections", "appends/s", rate, 1.8, false},
			{"… p99 latency", "ms", p99, 0, true},
			{"… server CPU per append", "µs", cost, 0, true},
			{"… load generator CPU per append", "µs", generated, 0, true}}},
		{lean: 1, run: func(_ context.Context, p *process) (result, error) { return appends(p, postLean, 1, o.length) }, rows: []row{
			{"appends of 256 B, 1 connection", "appends/s", rate, 0.5, false},
			{"… p50 latency", "ms", p50, 0, true}}},
		{run: func(_ context.Context, p *process) (result, error) { return appends(p, postWithClient, 1, o.length) }, rows: []row{
			{"appends of 256 B, 1 connection, Go's own client", "appends/s", rate, 0.5, false}}},
		{run: func(ctx context.Context, p *process) (result, error) {
			return fanOut(ctx, p, durableFeed, 1000, 20, o.length)
		}, rows: []row{
			{"1,000 SSE followers at 20 events/s, p50 latency", "ms", p50, 0.6, true},
			{"… p99 latency", "ms", p99, 0, true},
			{"… server CPU", "cores", cores, 0.5, true}}},
		{run: func(_ context.Context, p *process) (result, error) { return catchUp(p, 10_000, 4, o.length) }, rows: []row{
			{"catch-up of 10,000 events, 4 readers", "replays/s", rate, 4, false}}},
		{file: true, run: func(_ context.Context, p *process) (result, error) { return appends(p, postLean, 64, o.length) }, rows: []row{
			{"appends of 256 B, 64 connections, reference server on files", "appends/s", rate, 15, false}}},
	}
}

// measureRivals runs every load on both servers in turn, for several rounds.
func measureRivals(ctx context.Context, o options, r *report) error {
	for _, l := range loads(o) {
		if !r.wants(l.rows[0].name) {
			continue
		}
		a, b, err := measurePair(ctx, o, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.rows[0].name, err)
		}
		for _, row := range l.rows {
			r.pair(row, l.file, figures(a, row), figures(b, row))
		}
		if l.lean > 0 {
			r.inMemory[l.lean] = quantile(figures(b, l.rows[0]), .5)
		}
		for _, x := range slices.Concat(a, b) {
			if x.failed > 0 {
				r.note(fmt.Sprintf("%s: %d requests or deliveries failed in one round", l.rows[0].name, x.failed))
			}
		}
	}
	if err := measureIdle(ctx, o, r); err != nil {
		return err
	}
	return measureStuck(ctx, o, r)
}

func figures(rs []result, w row) []float64 {
	out := make([]float64, len(rs))
	for i, x := range rs {
		out[i] = w.figure(x)
	}
	return out
}

func measurePair(ctx context.Context, o options, l load) (a, b []result, err error) {
	for range o.rounds {
		x, err := measureOne(ctx, l, func() (*process, error) { return ours(ctx, o.bin) })
		if err != nil {
			return nil, nil, err
		}
		y, err := measureOne(ctx, l, func() (*process, error) { return rival(ctx, l.file) })
		if err != nil {
			return nil, nil, err
		}
		a, b = append(a, x), append(b, y)
		fmt.Fprintf(os.Stderr, "%s: ours %+v, rival %+v\n", l.rows[0].name, x, y)
	}
	return a, b, nil
}

func measureOne(ctx context.Context, l load, start func() (*process, error)) (result, error) {
	p, err := start()
	if err != nil {
		return result{}, err
	}
	defer p.stop()
	return l.run(ctx, p)
}

func measureIdle(ctx context.Context, o options, r *report) error {
	const name = "1,000 idle SSE followers"
	if !r.wants(name) {
		return nil
	}
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	x, err := idle(ctx, p, 1000, o.length)
	if err != nil {
		return err
	}
	r.alone(name+", server CPU", fmt.Sprintf("%.3f cores", x.cores), "≤ 0.02", x.cores <= 0.02)
	r.alone("… server memory per follower", fmt.Sprintf("%.1f KB", x.perUnit/1024), "≤ 30", x.perUnit <= 30*1024)
	return nil
}
