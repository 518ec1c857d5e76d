package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

func drawEvents(t *rapid.T) []tapedeck.Event {
	small := rapid.SampledFrom([]string{"1", "2", "3"})
	events := make([]tapedeck.Event, rapid.IntRange(0, 60).Draw(t, "length"))
	at := time.UnixMilli(0).UTC()
	for i := range events {
		s := rapid.SampledFrom(viewtest.Shapes).Draw(t, "shape")
		at = at.Add(time.Second)
		events[i] = tapedeck.Event{
			Offset: int64(i), Type: s.Type, Channel: tapedeck.ChannelOf(s.Type), Time: at,
			Thread:     rapid.SampledFrom([]string{"", "", "side"}).Draw(t, "thread"),
			Invocation: "i" + small.Draw(t, "invocation"),
			Data:       json.RawMessage(fmt.Sprintf(s.Data, small.Draw(t, "id"))),
		}
	}
	return events
}

func TestAnyChunkingFoldsToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		want := mustJSON(t, fold(events).Snapshot())

		var c view.Conversation
		var early []view.Snapshot
		var earlyJSON []string
		for i := 0; i < len(events); {
			n := rapid.IntRange(1, 10).Draw(t, "chunk")
			for _, e := range events[i:min(i+n, len(events))] {
				c.Apply(&e)
			}
			early = append(early, c.Snapshot())
			earlyJSON = append(earlyJSON, mustJSON(t, c.Snapshot()))
			i += n
			if i < len(events) && rapid.Bool().Draw(t, "repeat") { // a chunk that overlaps the one before
				i -= rapid.IntRange(0, n).Draw(t, "overlap")
			}
		}
		if got := mustJSON(t, c.Snapshot()); got != want {
			t.Fatalf("in chunks:\n%s\nat once:\n%s", got, want)
		}
		for i, s := range early {
			if got := mustJSON(t, s); got != earlyJSON[i] {
				t.Fatalf("a snapshot has changed since it was taken:\n%s", cmp.Diff(earlyJSON[i], got))
			}
		}
	})
}

func TestThreadsArePartsOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fold(drawEvents(t))
		whole, messages, calls, runs := c.Snapshot(), 0, 0, 0
		for _, l := range whole.Threads {
			part := c.Thread(l.Name)
			if len(part.Messages) != l.Messages {
				t.Fatalf("thread %s says it has %d messages and has %d", l.Name, l.Messages, len(part.Messages))
			}
			messages, calls, runs = messages+len(part.Messages), calls+len(part.Calls), runs+len(part.Runs)
		}
		if messages != len(whole.Messages) || calls != len(whole.Calls) || runs != len(whole.Runs) {
			t.Fatalf("the threads have %d messages, %d calls, %d runs; the whole has %d, %d, %d",
				messages, calls, runs, len(whole.Messages), len(whole.Calls), len(whole.Runs))
		}
	})
}

func TestAForkLeavesNothingOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		at := rapid.IntRange(0, len(events)).Draw(t, "at")
		c := fold(events[:at])
		c.Apply(&tapedeck.Event{Offset: int64(at), Type: tapedeck.SessionForked, Channel: tapedeck.ChannelSession, Time: time.UnixMilli(1e6)})
		s := c.Snapshot()
		if s.Session.Status == tapedeck.StatusRunning {
			t.Error("the fork is running")
		}
		for _, r := range s.Runs {
			open(t, "run", r.Invocation, r.Item)
		}
		for _, m := range s.Messages {
			open(t, "message", m.ID, m.Item)
		}
		for _, k := range s.Calls {
			if k.Status == tapedeck.StatusRunning {
				t.Errorf("call %s is running", k.ID)
			}
		}
	})
}

func open(t *rapid.T, what, id string, i view.Item) {
	t.Helper()
	if i.Status == tapedeck.StatusRunning || i.EndOffset == nil || i.EndedAt == nil || i.DurationMS == nil {
		t.Errorf("%s %s is open: %+v", what, id, i)
	}
}

// TestTextDoesNotDependOnItsCuts splits the text of a message into events at
// random. The text of the message is always the same.
func TestTextDoesNotDependOnItsCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOf(rapid.Rune()).Draw(t, "text")
		events := []tapedeck.Event{{Type: "TEXT_MESSAGE_START", Data: json.RawMessage(`{"messageId":"m"}`)}}
		for rest := runes; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			delta, _ := json.Marshal(string(rest[:n]))
			events = append(events, tapedeck.Event{
				Offset: int64(len(events)), Type: "TEXT_MESSAGE_CONTENT",
				Data: json.RawMessage(fmt.Sprintf(`{"messageId":"m","delta":%s}`, delta)),
			})
			rest = rest[n:]
		}
		if got := fold(events).Snapshot().Messages[0].Text; got != string(runes) {
			t.Fatalf("got %q, want %q", got, string(runes))
		}
	})
}

func TestFoldStopsBeforeItsOffset(t *testing.T) {
	events := readFixture(t, "testdata/text.json").events(t)
	for at := range int64(len(events)) + 2 {
		c, err := view.Fold(func(yield func(tapedeck.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}, nil, at)
		if err != nil {
			t.Fatal(err)
		}
		want := min(at, int64(len(events)))
		if s := c.Snapshot(); s.At != want || c.Through() != want-1 {
			t.Errorf("folded to %d: at is %d, through is %d", at, s.At, c.Through())
		}
	}
}

func TestFoldPassesErrorsOn(t *testing.T) {
	broken := tapedeck.Errorf(tapedeck.Unavailable, "broken")
	_, err := view.Fold(func(yield func(tapedeck.Event, error) bool) { yield(tapedeck.Event{}, broken) }, nil, 10)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestNotesAreBounded(t *testing.T) {
	var c view.Conversation
	for i := range int64(150) {
		c.Apply(&tapedeck.Event{Offset: i, Type: "STATE_SNAPSHOT", Data: json.RawMessage(`{}`)})
	}
	if s := c.Snapshot(); len(s.Notes) != 100 || s.Unnoted != 50 {
		t.Errorf("%d notes and %d left out", len(s.Notes), s.Unnoted)
	}
}

// FuzzApply folds any data as every type. It must not panic, and the snapshot
// must be valid JSON.
func FuzzApply(f *testing.F) {
	for _, s := range viewtest.Shapes {
		f.Add([]byte(fmt.Sprintf(s.Data, "1")), []byte(`{"messageId":"m1","delta":[{"op":"copy","from":"","path":"/a"}]}`))
	}
	types := make([]string, 0, len(viewtest.Shapes))
	for _, s := range viewtest.Shapes {
		types = append(types, s.Type)
	}
	slices.Sort(types)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) {
			t.Skip()
		}
		var c view.Conversation
		offset := int64(0)
		for _, typ := range slices.Compact(types) {
			for _, data := range [][]byte{a, b} {
				c.Apply(&tapedeck.Event{Offset: offset, Type: typ, Channel: tapedeck.ChannelOf(typ), Data: data})
				offset++
			}
		}
		if _, err := json.Marshal(c.Snapshot()); err != nil {
			t.Error(err)
		}
	})
}

func mustJSON(t rapid.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
