package main

import (
	"context"
	"runtime/debug"
	"time"
)

// trimEvery is how often trim looks.
const trimEvery = 5 * time.Second

// trim gives memory back after a burst of new followers. Each of them has
// needed a deep stack and some buffers once, to be answered, and then waits,
// maybe for hours, with a tenth of that; without new allocations the garbage
// collector would leave it so for minutes, and the pages for good.
func trim(ctx context.Context, followers func() int) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	known, trimmed := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n := followers()
		settled := n == known
		known = n
		if grown := n - trimmed; settled && (grown >= 100 && grown > trimmed/4 || n < trimmed/2) {
			trimmed = n
			debug.FreeOSMemory() // stacks shrink by half in each collection
			debug.FreeOSMemory()
		}
	}
}
