package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func index(events []tapedeck.Event) *view.Index {
	x := new(view.Index)
	for i := range events {
		x.Apply(&events[i])
	}
	return x
}

func TestIndexFixtures(t *testing.T) {
	testFixtures(t, "index", func(_ *testing.T, _ viewFixture, events []tapedeck.Event) any { return index(events) })
}

// TestIndexesJoin cuts a log into pieces, and folds, stores and joins them in
// different ways. The index is always the same.
func TestIndexesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkJoins(t, drawRaw(t))
	})
}

// TestLargeIndexesJoin does the same with more than an index keeps.
func TestLargeIndexesJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 9).Draw(t, "one in ten") > 0 {
			return // each of these logs takes long
		}
		shape := rapid.SampledFrom(viewShapes).Draw(t, "shape")
		events := make([]tapedeck.Event, rapid.IntRange(2000, 2600).Draw(t, "length"))
		at := time.UnixMilli(1_700_000_000_000).UTC()
		skew := rapid.IntRange(1, 1000).Draw(t, "skew")
		for i := range events {
			at = at.Add(time.Duration(i*skew%9000) * time.Millisecond)
			events[i] = tapedeck.Event{
				Offset: int64(i), Type: shape.Type, Channel: tapedeck.ChannelOf(shape.Type), Time: at,
				Invocation: fmt.Sprint("i", i/3), Data: json.RawMessage(shape.Data),
			}
		}
		checkJoins(t, events)
	})
}

func checkJoins(t *rapid.T, events []tapedeck.Event) {
	want := mustJSON(t, index(events))
	var pieces []view.Index
	for rest, next := events, new(view.Index); len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
		for i := range rest[:n] {
			next.Apply(&rest[i])
		}
		pieces = append(pieces, *checkpoint(t, *next))
		after := pieces[len(pieces)-1].Next()
		next, rest = &after, rest[n:]
	}
	for len(pieces) > 1 {
		i := rapid.IntRange(0, len(pieces)-2).Draw(t, "join")
		joined := pieces[i]
		if len(events) < 100 {
			before := mustJSON(t, joined)
			defer func(i view.Index) { // checked again after all later pieces
				if mustJSON(t, i) != before {
					t.Fatal("joining has changed what the index was copied from")
				}
			}(pieces[i])
		}
		joined.Append(pieces[i+1])
		pieces = slices.Replace(pieces, i, i+2, joined)
	}
	got := mustJSON(t, new(view.Index))
	if len(pieces) > 0 {
		got = mustJSON(t, pieces[0])
	}
	if len(events) > 0 && got != want {
		t.Fatal(cmp.Diff(want, got))
	}
}

func TestIndexContinuesFromACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		want := mustJSON(t, index(events))
		x := new(view.Index)
		for i := range events {
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				x = checkpoint(t, *x)
				x.Apply(&events[max(i-1, 0)])
			}
			x.Apply(&events[i])
		}
		if got := mustJSON(t, x); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

func TestIndexIsBounded(t *testing.T) {
	x := new(view.Index)
	at := time.UnixMilli(0).UTC()
	for i := range int64(50_000) {
		at = at.Add(3 * time.Second)
		x.Apply(&tapedeck.Event{
			Offset: i, Type: tapedeck.ToolCallStart, Invocation: fmt.Sprint("i", i), Time: at,
			Data: json.RawMessage(`{"toolCallName":"Read"}`),
		})
	}
	if len(x.Invocations) != 10_000 || len(x.Gaps) != 1000 || x.GapsLeftOut != 48_999 || len(x.Density.Counts) > 256 || x.Density.Counts[0] == 0 {
		t.Errorf("%d invocations, %d gaps and %d others, %d slots", len(x.Invocations), len(x.Gaps), x.GapsLeftOut, len(x.Density.Counts))
	}
	if n := len(x.Markers); n < 1000 || n > 2000 || x.Marked["tool"] != 50_000 || x.Markers[1].Offset != 32 {
		t.Errorf("%d markers of %v, the second at %d", n, x.Marked, x.Markers[1].Offset)
	}
}

// TestThinnedMarkersAreEven: a thinned kind keeps between half of the limit and
// the limit of its markers, spread over the whole log. A smaller sample is part
// of a larger one.
func TestThinnedMarkersAreEven(t *testing.T) {
	for _, every := range []int64{1, 2, 3, 4, 7, 64, 100} {
		for _, first := range []int64{0, 1, every - 1} {
			x := new(view.Index)
			for i := range int64(3000) {
				x.Apply(&tapedeck.Event{
					Offset: first + i*every, Type: tapedeck.MessageAdded, Time: time.UnixMilli(i).UTC(),
					Data: json.RawMessage(`{"message":{"role":"user","content":"go"}}`),
				})
			}
			larger := map[int64]bool{}
			for _, m := range x.Markers {
				larger[m.Offset] = true
			}
			for _, limit := range []int{2000, 500, 100, 7, 1} {
				got := x.Limited(limit).Markers
				if len(got) > limit || 2*len(got) < limit {
					t.Fatalf("every %d from %d: %d markers of at most %d", every, first, len(got), limit)
				}
				widest := int64(0)
				for i, m := range got {
					if !larger[m.Offset] {
						t.Fatalf("every %d from %d: %d is in a smaller sample only", every, first, m.Offset)
					}
					if i > 0 {
						widest = max(widest, m.Offset-got[i-1].Offset)
					}
				}
				if fair := 3000 * every / int64(len(got)); limit > 7 && widest > 3*fair {
					t.Errorf("every %d from %d: of %d markers two are %d apart", every, first, len(got), widest)
				}
				larger = map[int64]bool{}
				for _, m := range got {
					larger[m.Offset] = true
				}
			}
		}
	}
}

// TestDensity: the slots are as short as 256 of them allow, and count all
// events, each at its position.
func TestDensity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x view.Index
		steps := rapid.SliceOfN(rapid.Int64Range(0, 1<<26), 1, 50).Draw(t, "steps")
		at := int64(0)
		for i, ms := range steps {
			at += ms
			x.Apply(&tapedeck.Event{Offset: int64(i), Type: "acme.x", Time: time.UnixMilli(at).UTC()})
		}
		d := x.Density
		var sum int64
		for _, n := range d.Counts {
			sum += n
		}
		first, last := d.Counts[0], d.Counts[len(d.Counts)-1]
		if sum != int64(len(steps)) || len(d.Counts) > 256 || first == 0 || last == 0 || len(d.Counts) < 128 && d.WidthMS > 1 {
			t.Fatalf("%d slots of %d ms count %d of %d events, %d in the first and %d in the last", len(d.Counts), d.WidthMS, sum, len(steps), first, last)
		}
		if d.FromMS != 0 || int64(len(d.Counts))*d.WidthMS <= x.DurationMS {
			t.Fatal("the slots do not cover the whole recording")
		}
	})
}
