// Command pages writes random logs with the snapshots that package view folds
// from them, for tests of folds in other languages. It writes one JSON object
// per line. The same seeds give the same output.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

// A page is a log with its snapshots.
type page struct {
	Seed      uint64           `json:"seed"`
	Events    []tapedeck.Event `json:"events"`
	Snapshots []view.Snapshot  `json:"snapshots"` // in the order of their offsets
}

func main() {
	logs := flag.Uint64("logs", 50, "how many logs")
	first := flag.Uint64("first", 0, "the seed of the first one; the next ones count up")
	flag.Parse()
	if err := write(*first, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

func write(first, logs uint64) error {
	out := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	for seed := first; seed < first+logs; seed++ {
		p, err := newPage(seed)
		if err == nil {
			err = enc.Encode(p)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// options returns the options of a seed's log. Most logs are short and have a
// snapshot at every offset. Long logs, in which messages settle, have a few.
func options(seed uint64) viewtest.Options {
	o := viewtest.Options{Events: 60, Threads: 1 + int(seed%3)}
	switch seed % 8 {
	case 1:
		o.Jumps = .05
	case 2:
		o.Wild = .5
	case 3:
		o.Repeats, o.Restate = .1, .1
	case 4:
		o.Erased, o.Jumps = .2, .03
	case 5:
		o.Wild, o.Jumps, o.Repeats, o.Restate = .2, .03, .05, .03
	case 6:
		o.Wild = 1
	case 7:
		o.Events, o.Restate, o.Repeats, o.Jumps, o.Near = 1_500, .01, .02, .002, 300
	}
	return o
}

func newPage(seed uint64) (page, error) {
	p := page{Seed: seed, Events: viewtest.Log(seed, options(seed))}
	var jumps []tapedeck.Jump
	for i := range p.Events {
		if j, ok := p.Events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	timeline := view.NewTimeline(jumps)
	for at := range offsets(seed, int64(len(p.Events))) {
		c, err := view.Fold(all(p.Events), timeline, at)
		if err != nil {
			return p, err
		}
		p.Snapshots = append(p.Snapshots, c.Snapshot())
	}
	return p, nil
}

// offsets yields every offset of a short log, and some of a long one.
func offsets(seed uint64, n int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if n <= 100 {
			for at := int64(1); at <= n && yield(at); at++ {
			}
			return
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 4 {
			if !yield(1 + rng.Int64N(n)) {
				return
			}
		}
		yield(n)
	}
}

func all(events []tapedeck.Event) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}
