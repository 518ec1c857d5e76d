package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Timeline says which events of a session are active after its jumps, see
// [tapedeck.Jump]. It walks backwards from an offset: at a jump, the active
// events are those that were active before the offset to which it goes back.
//
// Events of [tapedeck.ChannelSession] are always active; do not ask a timeline
// about them. The zero value is the timeline of a session without jumps. A
// Timeline never changes, so goroutines may share it.
type Timeline struct {
	jumps []tapedeck.Jump // by offset
}

// NewTimeline returns the timeline of a session with exactly these jumps, in
// any order.
func NewTimeline(jumps []tapedeck.Jump) *Timeline {
	jumps = slices.Clone(jumps)
	slices.SortFunc(jumps, func(a, b tapedeck.Jump) int { return cmp.Compare(a.Offset, b.Offset) })
	return &Timeline{jumps: jumps}
}

// Jumps returns the jumps, oldest first. Do not change them.
func (t *Timeline) Jumps() []tapedeck.Jump { return t.jumps }

// Threads returns the names of threads that together stand for all threads:
// each thread with jumps of its own, and a name for all others. If thread is
// not "", it returns only that.
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

// noThread is a name that no thread has.
const noThread = "\x00"

// Marked returns the jump with a marker.
func (t *Timeline) Marked(marker string) (tapedeck.Jump, bool) {
	i := slices.IndexFunc(t.jumps, func(j tapedeck.Jump) bool { return j.Marker == marker })
	if i < 0 || marker == "" {
		return tapedeck.Jump{}, false
	}
	return t.jumps[i], true
}

// Before returns the newest jump below offset at that reverts events of a
// thread, or of any thread if thread is "".
func (t *Timeline) Before(thread string, at int64) (tapedeck.Jump, bool) {
	i, _ := slices.BinarySearchFunc(t.jumps, at, func(j tapedeck.Jump, at int64) int { return cmp.Compare(j.Offset, at) })
	for i--; i >= 0; i-- {
		if j := t.jumps[i]; thread == "" || j.Reverts(thread) {
			return j, true
		}
	}
	return tapedeck.Jump{}, false
}

// Ranges returns the offsets of the events that are active in a thread as of
// offset at, oldest first. "" is [tapedeck.MainThread]. No range is empty or
// touches the next.
func (t *Timeline) Ranges(thread string, at int64) []tapedeck.OffsetRange {
	return t.walk(thread, at, 1)
}

// Path returns the ranges of [Timeline.Ranges], each together with the jump
// before it.
func (t *Timeline) Path(thread string, at int64) []tapedeck.OffsetRange {
	return t.walk(thread, at, 0)
}

// walk returns the ranges between jumps. Each begins at the offset of its jump
// plus after.
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

// Has reports whether the event at an offset in a thread is active as of offset
// at. A jump is active if the walk passes it.
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
