// Command pages writes random logs with the snapshots that package view folds
// from them, for tests of folds in other languages. It writes one JSON object
// per line. The same seeds give the same output.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
)

func main() {
	logs := flag.Uint64("logs", 50, "number of logs")
	first := flag.Uint64("first", 0, "seed of the first log; the next ones count up")
	flag.Parse()
	if err := write(*first, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// A result is an encoded page, or why there is none.
type result struct {
	line []byte
	err  error
}

// write writes the pages in the order of their seeds. Some are computed at the
// same time.
func write(first, logs uint64) error {
	pending := make(chan chan result, runtime.GOMAXPROCS(0))
	go func() {
		defer close(pending)
		for seed := first; seed < first+logs; seed++ {
			one := make(chan result, 1)
			pending <- one
			go func() {
				line, err := newPage(seed)
				one <- result{line, err}
			}()
		}
	}()
	out := bufio.NewWriter(os.Stdout)
	for one := range pending {
		r := <-one
		if r.err != nil {
			return r.err
		}
		if _, err := out.Write(append(r.line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
