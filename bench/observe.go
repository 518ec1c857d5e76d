package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// measureObserved compares a server that is observed with one that is not, in turn: with
// metrics, and with a collector for traces, which gets nothing of requests without a trace.
// The processor time of an append is less noisy than the rate, which is that of the disk.
func measureObserved(ctx context.Context, o options, r *report) error {
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()
	for _, connections := range []int{1, 64} {
		name := fmt.Sprintf("observed: %d connections, metrics and traces on, compared with both off", connections)
		if !r.wants(name) {
			continue
		}
		rate, cost, err := observed(ctx, o, connections, sink.URL)
		if err != nil {
			return err
		}
		r.alone(name, fmt.Sprintf("%.2f× the rate, %.2f× the CPU", rate, cost), "≥ 0.97× the rate", rate >= .97)
	}
	return nil
}

// turns is how many parts a round has. The two servers take turns for each part, so that
// both meet the same other work of the machine.
const turns = 10

// observed returns the rate of a server that is observed, and what an append costs it, both
// compared with one that is not.
func observed(ctx context.Context, o options, connections int, sink string) (rate, cost float64, err error) {
	on, err := oursWith(ctx, o.bin, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + sink})
	if err != nil {
		return 0, 0, err
	}
	defer on.stop()
	off, err := oursWith(ctx, o.bin, nil, "--no-metrics")
	if err != nil {
		return 0, 0, err
	}
	defer off.stop()
	both := [2]*process{off, on}
	var rates, costs [2][]float64
	for i := range o.rounds * turns {
		for k := range both {
			k = (k + i) % 2 // neither is always the first
			x, err := appends(both[k], postLean, connections, o.length/turns)
			if err != nil {
				return 0, 0, err
			}
			rates[k], costs[k] = append(rates[k], x.rate), append(costs[k], x.cost)
		}
	}
	return quantile(rates[1], .5) / quantile(rates[0], .5), quantile(costs[1], .5) / quantile(costs[0], .5), nil
}
