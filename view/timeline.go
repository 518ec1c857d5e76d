package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Timeline says which events of a session are in force: those that are left
// after its jumps, see [tapedeck.Jump]. It is one walk backwards: at a jump, what
// was in force is what was in force before the event that it goes back to.
//
// Events of [tapedeck.ChannelSession] are always in force; a timeline is asked
// only for others. The zero value is that of a session without jumps. A Timeline
// does not change, and may be used by several goroutines.
type Timeline struct {
	jumps []tapedeck.Jump // by offset
}

// NewTimeline returns the timeline of a session that has these jumps and no
// others, in any order.
func NewTimeline(jumps []tapedeck.Jump) *Timeline {
	jumps = slices.Clone(jumps)
	slices.SortFunc(jumps, func(a, b tapedeck.Jump) int { return cmp.Compare(a.Offset, b.Offset) })
	return &Timeline{jumps: jumps}
}

// Jumps returns the jumps, oldest first. They are not to be changed.
func (t *Timeline) Jumps() []tapedeck.Jump { return t.jumps }

// Threads returns names of threads whose timelines are those of all threads, or
// of one if it is not "": every thread with jumps of its own, and one that stands
// for all others.
func (t *Timeline) Threads(thread string) []string {
	if thread != "" {
		return []string{thread}
	}
	names := []string{noThread}
	known := map[string]bool{"": true}
	for _, j := range t.jumps {
		for _, name := range append([]string{j.Thread}, j.With...) {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// noThread is the name of no thread.
const noThread = "\x00"

// Marked returns the jump of a marker.
func (t *Timeline) Marked(marker string) (tapedeck.Jump, bool) {
	i := slices.IndexFunc(t.jumps, func(j tapedeck.Jump) bool { return j.Marker == marker })
	if i < 0 || marker == "" {
		return tapedeck.Jump{}, false
	}
	return t.jumps[i], true
}

// Before returns the newest jump below offset at that takes events of a thread
// back; of any thread if thread is "".
func (t *Timeline) Before(thread string, at int64) (tapedeck.Jump, bool) {
	i, _ := slices.BinarySearchFunc(t.jumps, at, func(j tapedeck.Jump, at int64) int { return cmp.Compare(j.Offset, at) })
	for i--; i >= 0; i-- {
		if j := t.jumps[i]; thread == "" || j.Takes(thread) {
			return j, true
		}
	}
	return tapedeck.Jump{}, false
}

// Ranges returns where the events are that are in force in a thread as of offset
// at, oldest first; "" is [tapedeck.MainThread]. None is empty, and none touches
// the next.
func (t *Timeline) Ranges(thread string, at int64) []tapedeck.OffsetRange {
	return t.walk(thread, at, 1)
}

// Path returns the ranges of [Timeline.Ranges] together with the jumps that led
// from one to the next.
func (t *Timeline) Path(thread string, at int64) []tapedeck.OffsetRange {
	return t.walk(thread, at, 0)
}

// walk walks back. Each range begins so far after the jump before it.
func (t *Timeline) walk(thread string, at, after int64) []tapedeck.OffsetRange {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	var out []tapedeck.OffsetRange
	for at > 0 {
		j, ok := t.Before(thread, at)
		if !ok {
			out = append(out, tapedeck.OffsetRange{From: 0, To: at})
			break
		}
		if j.Offset+after < at {
			out = append(out, tapedeck.OffsetRange{From: j.Offset + after, To: at})
		}
		at = j.To
	}
	slices.Reverse(out)
	return out
}

// Has reports whether the event at an offset, which is in thread, is in force as
// of offset at. A jump is if it is what the thread went by.
func (t *Timeline) Has(offset int64, thread string, at int64) bool {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	for offset < at {
		j, ok := t.Before(thread, at)
		if !ok || offset >= j.Offset {
			return true
		}
		at = j.To
	}
	return false
}
