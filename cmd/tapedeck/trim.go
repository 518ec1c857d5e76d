package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// trimEvery is the time between two checks of trim.
const trimEvery = 5 * time.Second

// trim returns memory to the system after a burst. A follower needs a deep stack and
// some buffers for its first answer; then it waits, maybe for hours, with a tenth of
// that. A stalled reader drops its page. Without new allocations the garbage collector
// would free this memory only after minutes, and never return the pages.
func trim(ctx context.Context, followers func() int) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	var t trimmer
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if t.due(followers(), heapNow()) {
			debug.FreeOSMemory() // stacks shrink by half in each collection
			debug.FreeOSMemory()
		}
	}
}

// A trimmer decides when to trim.
type trimmer struct {
	known, trimmed int  // number of followers at the last check, and at the last trim
	heap           heap // at the last check
	worked         bool // the server was not quiet at a check after the last trim
}

// A heap has numbers of bytes: live was in use at the last collection, wasted is held
// without use, and allocated counts all allocations since the start. What became
// garbage since the last collection is in live, so wasted may be too small.
type heap struct{ wasted, allocated, live uint64 }

const (
	// maxWasted is how much memory may be held without use; a quarter of the memory in
	// use, if that is more, because the cost of a collection grows with it.
	maxWasted = 16 << 20

	// maxQuiet is how much a quiet server allocates between two checks.
	maxQuiet = 8 << 20
)

func (t *trimmer) due(followers int, h heap) bool {
	settled, quiet := followers == t.known, h.allocated-t.heap.allocated < maxQuiet
	t.known, t.heap = followers, h
	grown := followers - t.trimmed
	moved := settled && (grown >= 100 && grown > t.trimmed/4 || followers < t.trimmed/2)
	rested := quiet && t.worked // the collections during the work do not know what was garbage at its end
	t.worked = t.worked || !quiet
	if !moved && !rested && (!quiet || h.wasted <= max(maxWasted, h.live/4)) {
		return false
	}
	t.trimmed, t.worked = followers, false
	return true
}

func heapNow() heap {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	live := s[1].Value.Uint64()
	garbage := max(s[0].Value.Uint64(), live) - live
	return heap{wasted: garbage + s[2].Value.Uint64(), allocated: s[3].Value.Uint64(), live: live}
}
