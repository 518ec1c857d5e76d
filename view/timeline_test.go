package view_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A step of the model is an event of a thread, or a jump.
type step struct {
	thread string
	jump   *tapedeck.Jump
}

// effective computes the active offsets directly from the rule: after a jump,
// the active events are those that were active before the offset to which it
// goes back.
func effective(log []step, thread string) []int64 {
	var out []int64
	for i, s := range log {
		switch {
		case s.jump == nil && s.thread == thread:
			out = append(out, int64(i))
		case s.jump != nil && (s.jump.Thread == "" || s.jump.Thread == thread):
			out = effective(log[:s.jump.To], thread)
		}
	}
	return out
}

func timelineOf(log []step) *view.Timeline {
	var jumps []tapedeck.Jump
	for _, s := range log {
		if s.jump != nil {
			jumps = append(jumps, *s.jump)
		}
	}
	slices.Reverse(jumps) // the order must not matter
	return view.NewTimeline(jumps)
}

func drawLog(t *rapid.T) []step {
	thread := rapid.SampledFrom([]string{"main", "a", "b"})
	var log []step
	for n := range rapid.IntRange(0, 40).Draw(t, "length") {
		if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
			log = append(log, step{thread: thread.Draw(t, "thread")})
			continue
		}
		j := tapedeck.Jump{Offset: int64(n), To: rapid.Int64Range(0, int64(n)).Draw(t, "to"), Marker: fmt.Sprint("m", n)}
		if rapid.Bool().Draw(t, "of a thread") {
			j.Thread = thread.Draw(t, "whose")
		}
		log = append(log, step{jump: &j})
	}
	return log
}

// TestTimelineIsTheRule compares timelines with the rule at every offset of
// 10,000 random logs, which are more than 100,000 offsets.
func TestTimelineIsTheRule(t *testing.T) {
	check := func(t *rapid.T) {
		log := drawLog(t)
		timeline := timelineOf(log)
		at := rapid.Int64Range(0, int64(len(log))).Draw(t, "at")
		for _, thread := range []string{"main", "a", "b"} {
			want := effective(log[:at], thread)
			var has, inRanges []int64
			for i, s := range log {
				if s.jump == nil && s.thread == thread && timeline.Has(int64(i), thread, at) {
					has = append(has, int64(i))
				}
			}
			for _, r := range timeline.Ranges(thread, at) {
				for i := r.From; i < r.To; i++ {
					if s := log[i]; s.jump == nil && s.thread == thread {
						inRanges = append(inRanges, i)
					}
				}
			}
			if !slices.Equal(has, want) || !slices.Equal(inRanges, want) {
				t.Fatalf("%s as of %d: has %v, in ranges %v, want %v", thread, at, has, inRanges, want)
			}
		}
	}
	rapid.Check(t, check)
	if testing.Short() {
		return
	}
	for range 100 { // each with 100 logs
		rapid.Check(t, check)
	}
}

// TestJumpAndBack: after a jump, the active events are those before the event
// that it goes back to. A jump to the jump undoes it.
func TestJumpAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		n := int64(len(log))
		to := rapid.Int64Range(0, n).Draw(t, "to")
		log = append(log, step{jump: &tapedeck.Jump{Offset: n, To: to}}, step{jump: &tapedeck.Jump{Offset: n + 1, To: n}})
		timeline := timelineOf(log)
		for _, thread := range []string{"main", "a", "b"} {
			if d := cmp.Diff(timeline.Ranges(thread, to), timeline.Ranges(thread, n+1)); d != "" {
				t.Fatalf("after the jump: %s", d)
			}
			if d := cmp.Diff(timeline.Ranges(thread, n), timeline.Ranges(thread, n+2)); d != "" {
				t.Fatalf("after it was undone: %s", d)
			}
		}
	})
}

func TestTimelineByHand(t *testing.T) {
	// The log has three turns of three events, from offset 1: A has 1 to 3, B
	// has 4 to 6, and D comes after a rewind.
	rewind := func(offset, to int64) tapedeck.Jump {
		return tapedeck.Jump{Offset: offset, To: to, Marker: fmt.Sprint(offset)}
	}
	for name, test := range map[string]struct {
		jumps []tapedeck.Jump
		at    int64
		want  []tapedeck.OffsetRange
	}{
		"none":                     {nil, 7, ranges(0, 7)},
		"nothing yet":              {nil, 0, nil},
		"before B":                 {[]tapedeck.Jump{rewind(7, 4)}, 8, ranges(0, 4)},
		"and more events":          {[]tapedeck.Jump{rewind(7, 4)}, 10, ranges(0, 4, 8, 10)},
		"twice":                    {[]tapedeck.Jump{rewind(7, 4), rewind(10, 1)}, 11, ranges(0, 1)},
		"to a reverted offset":     {[]tapedeck.Jump{rewind(7, 4), rewind(10, 5)}, 11, ranges(0, 5)},
		"undone":                   {[]tapedeck.Jump{rewind(7, 4), rewind(10, 7)}, 11, ranges(0, 7)},
		"the undo undone":          {[]tapedeck.Jump{rewind(7, 4), rewind(8, 7), rewind(9, 8)}, 10, ranges(0, 4)},
		"to the first":             {[]tapedeck.Jump{rewind(7, 0)}, 8, nil},
		"to where it is":           {[]tapedeck.Jump{rewind(7, 7)}, 9, ranges(0, 7, 8, 9)},
		"as it was before":         {[]tapedeck.Jump{rewind(7, 4)}, 7, ranges(0, 7)},
		"of another thread":        {[]tapedeck.Jump{{Offset: 7, To: 4, Thread: "side"}}, 9, ranges(0, 9)},
		"of this thread":           {[]tapedeck.Jump{{Offset: 7, To: 4, Thread: "main"}}, 9, ranges(0, 4, 8, 9)},
		"of all, then another's":   {[]tapedeck.Jump{rewind(7, 4), {Offset: 9, To: 2, Thread: "side"}}, 10, ranges(0, 4, 8, 10)},
		"before the other's, back": {[]tapedeck.Jump{{Offset: 7, To: 4, Thread: "main"}, rewind(9, 7)}, 10, ranges(0, 7)},
	} {
		if d := cmp.Diff(test.want, view.NewTimeline(test.jumps).Ranges("", test.at)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	timeline := view.NewTimeline([]tapedeck.Jump{rewind(7, 4)})
	if j, ok := timeline.Marked("7"); !ok || j.To != 4 {
		t.Errorf("the marker names %+v, %v", j, ok)
	}
	if _, ok := timeline.Marked(""); ok {
		t.Error("no marker names a jump")
	}
}

func ranges(bounds ...int64) (out []tapedeck.OffsetRange) {
	for i := 0; i < len(bounds); i += 2 {
		out = append(out, tapedeck.OffsetRange{From: bounds[i], To: bounds[i+1]})
	}
	return out
}
