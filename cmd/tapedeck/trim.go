package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// trimEvery is how often trim looks.
const trimEvery = 5 * time.Second

// trim gives memory back when a burst is over. A follower has needed a deep stack
// and some buffers once, to be answered, and then waits, maybe for hours, with a
// tenth of that; a reader that stalls has dropped its page. Without new
// allocations the garbage collector would leave all of it for minutes, and the
// pages for good.
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

// A trimmer decides when it is time to trim.
type trimmer struct {
	known, trimmed int  // followers: at the last look, and when it was trimmed
	heap           heap // at the last look
}

// A heap is how much memory the process needs, how much it holds beside that, and
// how much it has ever allocated.
type heap struct{ wasted, allocated, live uint64 }

const (
	// wastedMost is how much may be held without need, or a quarter of what is
	// needed, if that is more: to look for garbage costs by what is needed.
	wastedMost = 16 << 20

	// quietMost is how much is allocated between two looks while nothing much
	// happens.
	quietMost = 8 << 20
)

func (t *trimmer) due(followers int, h heap) bool {
	settled, quiet := followers == t.known, h.allocated-t.heap.allocated < quietMost
	t.known, t.heap = followers, h
	grown := followers - t.trimmed
	moved := settled && (grown >= 100 && grown > t.trimmed/4 || followers < t.trimmed/2)
	if !moved && (!quiet || h.wasted <= max(wastedMost, h.live/4)) {
		return false
	}
	t.trimmed = followers
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
