// Bench compares Tapedeck with a reference server in one run, and writes the results to
// docs/benchmarks.md. On a shared machine absolute figures mean little. Ratios do mean
// something, because the same program loads both servers in turn within minutes.
//
//	make bench            # the whole table
//	go run ./bench -quick # a few seconds per row, to check that it works
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

type options struct {
	bin    string
	out    string
	rounds int
	length time.Duration
	only   string
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/tapedeck", "the program to measure")
	flag.StringVar(&o.out, "out", "docs/benchmarks.md", "where to write the table; - for standard output")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison; the result is the median")
	flag.DurationVar(&o.length, "length", 5*time.Second, "how long each load lasts")
	flag.StringVar(&o.only, "only", "", "measure only rows whose name contains this; print them, write no file")
	quick := flag.Bool("quick", false, "one round of one second per row; print the rows, write no file")
	floor := flag.String("floor", "", "run as the minimal server of this kind (nothing or bytes); -out is its file. The benchmark itself uses this flag.")
	flag.Parse()
	if *floor != "" {
		if err := serveFloor(*floor, o.out); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *quick {
		o.rounds, o.length, o.out = 1, time.Second, "-"
	}
	if o.only != "" {
		o.out = "-"
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	r := &report{only: o.only, inMemory: map[int]float64{}}
	for _, measure := range []func(context.Context, options, *report) error{
		measureRivals, measureFloors, measureStore, measureDatabases, measurePostgres, measureDeck, measureObserved,
		measureSockets, measureAGUI, measureForms, measureWorkflows,
	} {
		if err := measure(ctx, o, r); err != nil {
			return err
		}
	}
	if r.wants("views:") {
		if err := measureViews(ctx, r); err != nil {
			return err
		}
	}
	if r.wants("contexts:") {
		if err := measureContexts(ctx, r); err != nil {
			return err
		}
	}
	if r.wants("recording:") {
		if err := measureRecording(ctx, 2*o.length, r); err != nil {
			return err
		}
	}
	if o.out == "-" {
		return r.write(os.Stdout)
	}
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.write(f); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "wrote", o.out)
	return f.Close()
}
