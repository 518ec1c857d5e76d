package projection_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
)

// A countingStore counts reads.
type countingStore struct {
	tapedeck.Store
	reads int
}

func (s *countingStore) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	s.reads++
	return s.Store.Read(ctx, session, r)
}

// checkFind looks up every invocation and every thread of a session, and two that
// it does not have.
func checkFind(t *testing.T, p *projection.Projections, l tapedeck.Log, session string) {
	t.Helper()
	invocations, threads := map[string]int64{}, map[string]int64{}
	for e, err := range tapedeck.Events(t.Context(), l, session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := threads[e.ThreadName()]; !ok {
			threads[e.ThreadName()] = e.Offset
		}
		if _, ok := invocations[e.Invocation]; !ok && e.Invocation != "" {
			invocations[e.Invocation] = e.Offset
		}
	}
	for name, want := range invocations {
		if got, ok, err := p.FindInvocation(t.Context(), session, name); err != nil || !ok || got != want {
			t.Fatalf("invocation %s of %s is at %d, %t, %v; want %d", name, session, got, ok, err, want)
		}
	}
	for name, want := range threads {
		if got, ok, err := p.FindThread(t.Context(), session, name); err != nil || !ok || got != want {
			t.Fatalf("thread %s of %s is at %d, %t, %v; want %d", name, session, got, ok, err, want)
		}
	}
	if _, ok, err := p.FindInvocation(t.Context(), session, "main"); ok || err != nil {
		t.Fatalf("a thread is found as an invocation: %t, %v", ok, err)
	}
	if _, ok, err := p.FindThread(t.Context(), session, "i1"); ok || err != nil {
		t.Fatalf("an invocation is found as a thread: %t, %v", ok, err)
	}
}

func TestFind(t *testing.T) {
	d := newDeck(t)
	short := func() *projection.Projections { return projection.New(projection.Options{Store: d, Every: 4}) }
	checkFind(t, short(), d, d.id)
	for i := range 120 { // 960 events: tables of 4, 40 and 400 events
		d.run([]string{"", "a", "b"}[i%3])
		if i%40 == 7 {
			d.append(say("", "i1", tapedeck.Custom, `{"name":"late","value":1}`)) // i1 is in later tables, too
			d.jump(d.head-20, "")
		}
	}
	fork := d.branchOff("fork", 410)
	for range 30 {
		fork.run("c")
	}
	for _, id := range []string{d.id, "fork"} {
		checkFind(t, short(), d, id) // makes the tables
		checkFind(t, short(), d, id)
	}
	if _, ok, err := short().FindThread(t.Context(), d.id, "c"); ok || err != nil {
		t.Errorf("the parent has a thread of its fork: %t, %v", ok, err)
	}
	if _, _, err := short().FindThread(t.Context(), "none", "c"); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("of a session that does not exist: %v", err)
	}
}

// The tables are made while a session grows, in any number of parts.
func TestFindAfterAdvance(t *testing.T) {
	d := newDeck(t)
	p := projection.New(projection.Options{Store: d, Every: 4})
	for range 55 { // 441 events: a table of 400, too
		d.run("")
		if err := p.Advance(t.Context(), d.id); err != nil {
			t.Fatal(err)
		}
	}
	page, err := d.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView, Query: "/names.", Limit: 1000})
	if want := int(d.head / 4); err != nil || len(page.Sessions) != want {
		t.Fatalf("there are %d tables, %v; want %d", len(page.Sessions), err, want)
	}
	checkFind(t, projection.New(projection.Options{Store: d, Every: 4}), d, d.id)
}

// A look-up reads as little in a long session as in a short one, also when every
// event is of another invocation.
func TestFindReadsLittle(t *testing.T) {
	d := newDeck(t)
	store := &countingStore{Store: d}
	for range 20 {
		events := make([]tapedeck.Event, 1000)
		for i := range events {
			events[i] = tapedeck.Event{Type: tapedeck.Custom, Invocation: fmt.Sprint("j", d.head+int64(i)), Data: []byte(`{"name":"n","value":1}`)}
		}
		d.append(events...)
	}
	if err := projection.New(projection.Options{Store: store, Every: 100}).Advance(t.Context(), d.id); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{1, 9_999, 10_000, 19_999, 20_000} {
		store.reads = 0
		p := projection.New(projection.Options{Store: store, Every: 100})
		got, ok, err := p.FindInvocation(t.Context(), d.id, fmt.Sprint("j", offset))
		if err != nil || !ok || got != offset {
			t.Errorf("%d is at %d, %t, %v", offset, got, ok, err)
		}
		if store.reads > 6 { // two of each of the tables of 10,000 events, two of the rest
			t.Errorf("it has read %d times", store.reads)
		}
	}
}

// A table that is broken or lost is made again.
func TestFindWithoutTables(t *testing.T) {
	d := newDeck(t)
	for range 60 {
		d.run("")
	}
	p := projection.New(projection.Options{Store: d, Every: 4})
	if err := p.Advance(t.Context(), d.id); err != nil {
		t.Fatal(err)
	}
	page, err := d.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView, Query: "/names.", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Sessions {
		if err := d.Delete(t.Context(), page.Sessions[i].ID); err != nil {
			t.Fatal(err)
		}
		if broken := strings.HasSuffix(page.Sessions[i].ID, "00"); broken {
			d.create(tapedeck.Spec{ID: page.Sessions[i].ID, Kind: tapedeck.KindView, Chunks: [][]byte{[]byte("x")}, Closed: true})
		}
	}
	checkFind(t, projection.New(projection.Options{Store: d, Every: 4}), d, d.id)
	again, err := d.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView, Query: "/names.", Limit: 1000})
	if err != nil || len(again.Sessions) != len(page.Sessions) {
		t.Errorf("there are %d tables, %v; want %d", len(again.Sessions), err, len(page.Sessions))
	}
	if err := p.Forget(t.Context(), d.id); err != nil {
		t.Fatal(err)
	}
	left, err := d.List(t.Context(), tapedeck.Filter{Kind: tapedeck.KindView})
	if err != nil || len(left.Sessions) > 0 {
		t.Errorf("%d checkpoints are left, %v", len(left.Sessions), err)
	}
}
