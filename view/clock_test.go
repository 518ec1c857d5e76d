package view_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A clockView is what the fixtures of the clock expect.
type clockView struct {
	view.Clock
	Positions []int64        `json:"positions"` // of each event, in milliseconds
	Stretches []view.Stretch `json:"stretches"`
	Gaps      []view.Gap     `json:"gaps"`
}

func clock(events []tapedeck.Event) clockView {
	v, x := clockView{Stretches: []view.Stretch{}, Gaps: []view.Gap{}}, index(events)
	for i := range events {
		v.Apply(&events[i])
		v.Positions = append(v.Positions, v.DurationMS)
	}
	v.Stretches, v.Gaps = append(v.Stretches, x.Stretches...), append(v.Gaps, x.Gaps...)
	return v
}

func TestClockFixtures(t *testing.T) {
	testFixtures(t, "clock", func(_ *testing.T, _ viewFixture, events []tapedeck.Event) any { return clock(events) })
}

// TestAdministrationTakesNoTime adds events of the session itself anywhere in a log, at any
// time. No position of another event changes, and no summary of time.
func TestAdministrationTakesNoTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		var plain, with []tapedeck.Event
		for _, e := range events {
			for rapid.IntRange(0, 4).Draw(t, "more") == 0 {
				with = append(with, tapedeck.Event{
					Type:    rapid.SampledFrom([]string{tapedeck.BookmarkAdded, tapedeck.SessionRenamed, tapedeck.SessionImported, tapedeck.FeedbackAdded, tapedeck.PresenceLeft}).Draw(t, "type"),
					Channel: rapid.SampledFrom([]string{tapedeck.ChannelSession, tapedeck.ChannelPresence}).Draw(t, "channel"),
					Time:    time.UnixMilli(rapid.Int64Range(-1<<40, 1<<42).Draw(t, "time")).UTC(),
				})
			}
			plain, with = append(plain, e), append(with, e)
		}
		for i := range plain {
			plain[i].Offset = int64(i)
		}
		for i := range with {
			with[i].Offset = int64(i)
		}
		a, b := summarize(0, plain).Summary(), summarize(0, with).Summary()
		if a.RecordingMS != b.RecordingMS || a.ElapsedMS != b.ElapsedMS || a.DurationMS != b.DurationMS || a.Axis != b.Axis {
			t.Fatalf("%d, %d and %d ms became %d, %d and %d", a.RecordingMS, a.ElapsedMS, a.DurationMS, b.RecordingMS, b.ElapsedMS, b.DurationMS)
		}
		if x, y := index(plain), index(with); x.DurationMS != y.DurationMS || len(x.Stretches) != len(y.Stretches) || len(x.Gaps) != len(y.Gaps) {
			t.Fatal("the index is another")
		}
	})
}

// TestPositions: positions begin at 0 and never decrease, whatever the times are; the
// stretches and the times of the events give them.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		for i := range events {
			if rapid.Bool().Draw(t, "wild") {
				events[i].Time = time.UnixMilli(rapid.Int64Range(-1<<42, 1<<46).Draw(t, "time")).UTC()
			}
		}
		var last int64
		v := clock(events)
		for i, at := range v.Positions {
			e := &events[i]
			if at < last || i == 0 && at != 0 {
				t.Fatalf("event %d is at %d, after %d", i, at, last)
			}
			if !view.IsAdministrative(e.Channel) {
				if by := byStretches(v.Stretches, e, last); by != at {
					t.Fatalf("event %d is at %d; the stretches give %d", i, at, by)
				}
			}
			last = at
		}
	})
}

// byStretches returns the position of an event of the conversation after another one.
func byStretches(list []view.Stretch, e *tapedeck.Event, last int64) int64 {
	at := last
	for _, s := range list {
		if s.Offset <= e.Offset {
			at = s.PositionMS + e.Time.UnixMilli() - s.At.UnixMilli()
		}
	}
	return max(last, at)
}

func TestStretchesAreBounded(t *testing.T) {
	x := new(view.Index)
	at := time.UnixMilli(0).UTC()
	for i := range int64(30_000) {
		typ := []string{tapedeck.RunStarted, tapedeck.RunFinished}[i%2]
		at = at.Add(3 * time.Second)
		x.Apply(&tapedeck.Event{Offset: i, Type: typ, Invocation: fmt.Sprint("i", i/2), Time: at})
	}
	if n := len(x.Stretches); n < 500 || n > 1000 || x.DurationMS != 15_000*3000 || x.StretchesThinned == 0 {
		t.Errorf("%d stretches of %d ms, thinned %d times", n, x.DurationMS, x.StretchesThinned)
	}
	if y := x.Limited(7); len(y.Stretches) > 7 || len(y.Stretches) < 3 || y.Stretches[0] != x.Stretches[0] {
		t.Errorf("%d stretches", len(y.Stretches))
	}
	if n := len(x.OpenRuns); n != 0 {
		t.Errorf("%d open runs", n)
	}
}
