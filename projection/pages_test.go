package projection_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
	"github.com/tapedeck/tapedeck/view/viewtest"
)

var pageSeeds = flag.Int("seeds", 1, "how many random sessions TestPagesOfRandomSessions makes of each kind")

// sessionKinds are kinds of sessions whose pages were once wrong, or could be.
var sessionKinds = map[string]viewtest.Options{
	"plain":       {Threads: 1},
	"threads":     {Threads: 3, Jumps: .004, Near: 300},
	"jumps":       {Threads: 3, Jumps: .02, Near: 2000},
	"repeats":     {Threads: 2, Jumps: .002, Near: 500, Repeats: .05},
	"restated":    {Threads: 2, Restate: .004, Repeats: .01},
	"everything":  {Threads: 3, Jumps: .005, Near: 1000, Repeats: .02, Restate: .003, Wild: .02, Erased: .02},
	"wild events": {Threads: 2, Jumps: .002, Wild: .5},
}

// filled is a store with a session of these events.
func filled(t fataler, events []tapedeck.Event) *deck {
	d := &deck{Store: memory.New(memory.Options{}), t: t, id: "ses_1"}
	d.create(tapedeck.Spec{ID: d.id, Events: events[:1]})
	if _, err := d.Append(context.Background(), tapedeck.Append{Session: d.id, Events: events[1:]}); err != nil {
		t.Fatal(err)
	}
	d.head = int64(len(events))
	return d
}

// TestPagesOfRandomSessions compares the page of every limit, and the result of
// paging back, with the fold of all events. No page leaves out an item without
// counting it, and no item appears twice.
func TestPagesOfRandomSessions(t *testing.T) {
	for name, o := range sessionKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(*pageSeeds) {
				o.Events = []int{3_000, 6_099, 700, 10_000}[seed%4]
				checkPages(t, seed, o)
			}
		})
	}
}

func checkPages(t *testing.T, seed uint64, o viewtest.Options) {
	t.Helper()
	d := filled(t, viewtest.Log(seed, o))
	rng := rand.New(rand.NewPCG(seed, 2))
	every := []int64{500, projection.DefaultEvery, 2_000}[seed%3]
	p := projection.New(projection.Options{Store: d, Every: every})
	for i, at := range []int64{d.head, rng.Int64N(d.head + 1)} {
		thread := []string{"", "side1"}[(int(seed)+i)%2]
		name := fmt.Sprintf("seed %d, every %d, at %d, thread %q", seed, every, at, thread)
		c := pageCheck{t, d, p, name, at, thread, wantOf(t, d, at, thread)}
		for _, limit := range []int{0, 1, 100, 128, 129, 500, 1000, 10_000} {
			c.one(limit, 0)
		}
		for _, bytes := range []int{1, 10_000, 1 << 30} {
			c.one(100, bytes)
			c.one(0, bytes)
		}
		c.back(30+rng.IntN(300), 0)
		c.back(30+rng.IntN(300), 5_000+rng.IntN(100_000))
	}
}

// TestPagesOfLargeMessages: a page has at most its bytes, and every message in it is whole.
func TestPagesOfLargeMessages(t *testing.T) {
	const bytes, large, small, turns = 100 << 10, 90_000, 100, 60
	events := []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: json.RawMessage(`{}`)}}
	size := func(i int) int {
		if i%10 == 0 && i < turns*10/2 {
			return large
		}
		return small
	}
	for i := range turns * 10 {
		events = append(events, tapedeck.Event{Type: tapedeck.MessageAdded, Data: fmt.Appendf(nil, `{"message":{"id":"m%d","role":"user","content":%q}}`, i, strings.Repeat("x", size(i)))})
	}
	d := filled(t, events)
	p := projection.New(projection.Options{Store: d})
	left, before := turns*10, int64(0)
	for pages := 0; left > 0; pages++ {
		s, err := p.Snapshot(t.Context(), d.id, view.Query{Limit: 1000, Bytes: bytes, Before: before})
		if err != nil || len(s.Messages) == 0 || s.Size() > bytes || len(s.Messages)+s.Earlier != left || pages > turns {
			t.Fatalf("page %d: %d messages of %d bytes, %d earlier of %d: %v", pages, len(s.Messages), s.Size(), s.Earlier, left, err)
		}
		for i, m := range s.Messages {
			if n := s.Earlier + i; m.ID != fmt.Sprint("m", n) || len(m.Text) != size(n) {
				t.Fatalf("page %d: message %d is %s and has %d bytes", pages, n, m.ID, len(m.Text))
			}
		}
		left, before = s.Earlier, s.Messages[0].Offset
	}
}

// TestPagesOfRunsWithLargeMessages: runs have a page of their own, whatever else is large.
func TestPagesOfRunsWithLargeMessages(t *testing.T) {
	const bytes, runs = 20_000, 200
	events := []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: json.RawMessage(`{}`)}}
	for i := range runs {
		run := fmt.Sprint("r", i)
		events = append(events, tapedeck.Event{Type: tapedeck.RunStarted, Invocation: run, Data: json.RawMessage(`{}`)})
		for n := range 5 {
			events = append(events, tapedeck.Event{Type: tapedeck.MessageAdded, Invocation: run, Data: fmt.Appendf(nil, `{"message":{"id":"m%d.%d","role":"assistant","content":%q}}`, i, n, strings.Repeat("x", bytes))})
		}
		events = append(events,
			tapedeck.Event{Type: tapedeck.RunStarted, Thread: "sub_" + run, Invocation: "s" + run, Data: json.RawMessage(`{}`)},
			tapedeck.Event{Type: tapedeck.RunFinished, Thread: "sub_" + run, Invocation: "s" + run, Data: fmt.Appendf(nil, `{"result":%q}`, strings.Repeat("x", 3*bytes))},
			tapedeck.Event{Type: tapedeck.RunFinished, Invocation: run, Data: fmt.Appendf(nil, `{"result":%q}`, strings.Repeat("x", bytes/10))})
	}
	d := filled(t, events)
	p := projection.New(projection.Options{Store: d})
	left, before := runs, int64(0)
	for pages := 0; left > 0; pages++ {
		s, err := p.Snapshot(t.Context(), d.id, view.Query{Runs: true, Limit: 1000, Bytes: bytes, Before: before})
		if err != nil || len(s.Runs) == 0 || s.Size() > bytes || len(s.Runs)+s.Earlier != left {
			t.Fatalf("page %d: %d runs of %d bytes, %d earlier of %d: %v", pages, len(s.Runs), s.Size(), s.Earlier, left, err)
		}
		for i, r := range s.Runs {
			if n := s.Earlier + i; r.Invocation != fmt.Sprint("r", n) || len(r.Result) < bytes/10 {
				t.Fatalf("page %d: run %d is %s and has a result of %d bytes", pages, n, r.Invocation, len(r.Result))
			}
		}
		left, before = s.Earlier, s.Runs[0].Offset
	}
}

func wantOf(t fataler, d *deck, at int64, thread string) view.Snapshot {
	c := wantFold(t, d, d.id, at)
	if thread != "" {
		return c.Thread(thread)
	}
	return c.Snapshot()
}

// A pageCheck compares pages of a session at an offset with the whole.
type pageCheck struct {
	*testing.T
	d      *deck
	p      *projection.Projections
	name   string
	at     int64
	thread string
	whole  view.Snapshot
}

func (c *pageCheck) get(limit, bytes int, before int64) view.Snapshot {
	c.Helper()
	s, err := c.p.Snapshot(c.Context(), c.d.id, view.Query{At: new(c.at), Thread: c.thread, Limit: limit, Bytes: bytes, Before: before})
	if err != nil {
		c.Fatalf("%s: %v", c.name, err)
	}
	if n := s.Size(); bytes > 0 && n > bytes && first(&s) != last(&s) {
		c.Fatalf("%s, limit %d before %d: a page of %d bytes has %d", c.name, limit, before, bytes, n)
	}
	return s
}

// first returns where the items of a page begin: the page before ends there.
func first(s *view.Snapshot) int64 {
	at := s.At
	if len(s.Messages) > 0 {
		at = min(at, s.Messages[0].Offset)
	}
	if len(s.Calls) > 0 {
		at = min(at, s.Calls[0].Offset)
	}
	return at
}

func last(s *view.Snapshot) int64 {
	at := int64(-1)
	if n := len(s.Messages); n > 0 {
		at = max(at, s.Messages[n-1].Offset)
	}
	if n := len(s.Calls); n > 0 {
		at = max(at, s.Calls[n-1].Offset)
	}
	return at
}

// one checks the newest page.
func (c *pageCheck) one(limit, bytes int) {
	c.Helper()
	s := c.get(limit, bytes, 0)
	all := c.whole.Messages
	if len(s.Messages)+s.Earlier != len(all) {
		c.Fatalf("%s, limit %d: %d messages and %d earlier, there are %d", c.name, limit, len(s.Messages), s.Earlier, len(all))
	}
	c.same(fmt.Sprint("limit ", limit), all[s.Earlier:], s.Messages)
	if limit > 0 && (bytes == 0 || bytes > 1<<20) && len(s.Messages) < min(limit, len(all)) {
		c.Fatalf("%s, limit %d: only %d messages of %d", c.name, limit, len(s.Messages), len(all))
	}
	if s.Earlier == 0 && limit > 0 && bytes == 0 {
		c.same("calls", c.whole.Calls, s.Calls)
		c.same("runs", c.whole.Runs, s.Runs)
	}
}

// back pages back from the end to the beginning.
func (c *pageCheck) back(limit, bytes int) {
	c.Helper()
	var messages []view.Message
	var calls []view.ToolCall
	before := int64(0)
	for {
		s := c.get(limit, bytes, before)
		messages = append(s.Messages[:len(s.Messages):len(s.Messages)], messages...)
		calls = append(s.Calls[:len(s.Calls):len(s.Calls)], calls...)
		if s.Earlier != len(c.whole.Messages)-len(messages) {
			c.Fatalf("%s, %d before %d: %d are earlier, %d of %d are found", c.name, limit, before, s.Earlier, len(messages), len(c.whole.Messages))
		}
		if s.Earlier == 0 {
			break
		}
		if len(s.Messages) == 0 && (bytes == 0 || len(s.Calls) == 0 && len(s.Runs) == 0) {
			c.Fatalf("%s, %d before %d: nothing, and %d are earlier", c.name, limit, before, s.Earlier)
		}
		if before = first(&s); bytes == 0 {
			before = s.Messages[0].Offset
		}
	}
	c.same(fmt.Sprintf("messages in pages of %d", limit), c.whole.Messages, messages)
	c.same(fmt.Sprintf("calls in pages of %d", limit), c.whole.Calls, calls)
}

func (c *pageCheck) same(what string, want, got any) {
	c.Helper()
	if reflect.DeepEqual(want, got) {
		return // that is quick; what went through a checkpoint differs in ways that do not show
	}
	if d := cmp.Diff(encode(c, want), encode(c, got)); d != "" {
		c.Fatalf("%s: %s: %s", c.name, what, d[:min(len(d), 4000)])
	}
}
