// Bench measures Tapedeck against a rival in one run and writes what it found
// to docs/benchmarks.md. Speed on a shared machine means little; ratios of two
// servers that were loaded in turn, by the same program, in the same minutes,
// mean something.
//
//	make bench            # the whole table
//	go run ./bench -quick # a few seconds a row, to see that it works
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
	flag.IntVar(&o.rounds, "rounds", 5, "rounds for each pair, in turn; the result is the median")
	flag.DurationVar(&o.length, "length", 5*time.Second, "how long each load lasts")
	flag.StringVar(&o.only, "only", "", "measure only rows whose name contains this; print them, write no file")
	quick := flag.Bool("quick", false, "one round of one second per row; print the rows, write no file")
	floor := flag.String("floor", "", "run as a server that stores nothing, or bytes in the file -out (the benchmark starts it itself)")
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
	if err := measureRivals(ctx, o, r); err != nil {
		return err
	}
	if err := measureFloors(ctx, o, r); err != nil {
		return err
	}
	if err := measureStore(ctx, o, r); err != nil {
		return err
	}
	if r.wants("views:") {
		if err := measureViews(ctx, r); err != nil {
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
