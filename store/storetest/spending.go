package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Spending is what a store knows of what the runs of owners have used.
type Spending interface {
	Of(ctx context.Context, owner, period string) (store.Spending, error)
	Grant(ctx context.Context, owner, period string, n int64) error
}

// RunSpending runs the suite of the spending of owners. open returns a new and empty store,
// and of returns the spending of an open store.
func RunSpending(t *testing.T, open func(testing.TB) Store, of func(tapedeck.Store) Spending) {
	for name, test := range map[string]func(*purses){
		"charges": testCharges, "grants": testGrants, "faults": testChargeFaults, "writers": testChargesAtOnce,
	} {
		t.Run(name, func(t *testing.T) { test(&purses{start(t, open), of}) })
	}
}

// purses is a store with the spending of owners.
type purses struct {
	*world
	of func(tapedeck.Store) Spending
}

func (p *purses) all() Spending { return p.of(p.Store.Store) }

// session creates a session of an owner, "" for none.
func (p *purses) session(id, owner string) {
	p.t.Helper()
	created := tapedeck.Event{Type: tapedeck.SessionCreated, Data: []byte(`{"owner":"` + owner + `"}`)}
	if _, err := p.Create(p.ctx, tapedeck.Spec{ID: id, Events: []tapedeck.Event{created}}); err != nil {
		p.t.Fatal(err)
	}
}

// use appends the usage of n tokens that cost n cents.
func (p *purses) use(session string, n int, change ...func(*tapedeck.Append)) error {
	a := tapedeck.Append{Session: session, Events: []tapedeck.Event{
		{Type: tapedeck.UsageReported, Data: fmt.Appendf(nil, `{"totalTokens":%d,"costUsd":%v}`, n, float64(n)/100)},
	}}
	for _, f := range change {
		f(&a)
	}
	_, err := p.Append(p.ctx, a)
	return err
}

// has compares the spending of an owner in a period.
func (p *purses) has(owner, period string, want store.Spending) {
	p.t.Helper()
	if got := must(p.all().Of(p.ctx, owner, period))(p.t); got != want {
		p.t.Errorf("%s has spent %+v in %s, want %+v", owner, got, period, want)
	}
}

func spent(tokens, turns int64) store.Spending {
	return store.Spending{Amount: tapedeck.Amount{Tokens: tokens, USD: float64(tokens) / 100, Turns: turns}}
}

// An append charges the owner of its session in the day and the month of the store's clock,
// in the transaction that writes the events. A repetition, an import and a session without
// an owner charge nobody. What was spent stays when the session is deleted.
func testCharges(p *purses) {
	p.session("a", "ada")
	p.session("b", "ada")
	p.session("c", "bob")
	p.session("d", "")
	once := func(a *tapedeck.Append) { a.Producer = &tapedeck.Producer{ID: "p"} }
	for _, err := range []error{
		p.use("a", 10), p.use("b", 5, once), p.use("b", 5, once), p.use("c", 3), p.use("d", 100),
		p.use("a", 1000, func(a *tapedeck.Append) { a.Elsewhere = true }),
		p.Delete(p.ctx, "b"),
	} {
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.has("ada", "2026-07-01", spent(15, 2))
	p.has("ada", "2026-07", spent(15, 2))
	p.has("bob", "2026-07-01", spent(3, 1))
	p.has("", "2026-07-01", store.Spending{})
	if s := must(p.Head(p.ctx, "a"))(p.t); s.Spent == nil || s.Spent.Tokens != 1010 || s.Spent.Turns != 2 {
		p.t.Errorf("the session has spent %+v", s.Spent)
	}
	// The time of a run counts when it ends, or asks people.
	run := func(typ, data string) {
		p.t.Helper()
		if _, err := p.Append(p.ctx, tapedeck.Append{Session: "c", Events: []tapedeck.Event{{Type: typ, Invocation: "i", Data: []byte(data)}}}); err != nil {
			p.t.Fatal(err)
		}
	}
	if p.Clock == nil {
		return
	}
	run(tapedeck.RunStarted, `{"threadId":"main","runId":"i"}`)
	p.Clock.Advance(3 * time.Second)
	run(tapedeck.PermissionRequested, `{"id":"q","options":[{"id":"y"}]}`)
	p.Clock.Advance(time.Hour)
	run(tapedeck.PermissionAnswered, `{"id":"q","option":"y"}`)
	p.Clock.Advance(1500 * time.Millisecond)
	run(tapedeck.RunFinished, `{"threadId":"main","runId":"i"}`)
	want := spent(3, 1)
	want.Seconds = 4.5
	p.has("bob", "2026-07-01", want)
	p.Clock.Advance(24 * time.Hour)
	if err := p.use("c", 7); err != nil {
		p.t.Fatal(err)
	}
	p.has("bob", "2026-07-01", want)
	p.has("bob", "2026-07-02", spent(7, 1))
	if p.Reopen != nil {
		p.reopen()
		p.has("bob", "2026-07-02", spent(7, 1))
		if s := must(p.Head(p.ctx, "c"))(p.t); s.Spent == nil || s.Spent.Seconds != 4.5 || s.Spent.Tokens != 10 || !s.Spent.Since.IsZero() {
			p.t.Errorf("the reopened session has spent %+v", s.Spent)
		}
	}
}

// The number of grants only grows.
func testGrants(p *purses) {
	for _, n := range []int64{2, 5, 3} {
		if err := p.all().Grant(p.ctx, "ada", "2026-07", n); err != nil {
			p.t.Fatal(err)
		}
	}
	p.has("ada", "2026-07", store.Spending{Grants: 5})
	p.has("bob", "2026-07", store.Spending{})
}

// A commit that fails charges nobody.
func testChargeFaults(p *purses) {
	if p.FailCommits == nil {
		p.t.Skip("no commit of this store can fail")
	}
	p.session("a", "ada")
	p.FailCommits(true)
	if err := p.use("a", 10); tapedeck.KindOf(err) != tapedeck.Unavailable {
		p.t.Errorf("got %v", err)
	}
	if err := p.all().Grant(p.ctx, "ada", "2026-07", 1); tapedeck.KindOf(err) != tapedeck.Unavailable {
		p.t.Errorf("got %v", err)
	}
	p.FailCommits(false)
	p.has("ada", "2026-07", store.Spending{})
	if err := p.use("a", 10); err != nil {
		p.t.Fatal(err)
	}
	p.has("ada", "2026-07", spent(10, 1))
}

// Appends to several sessions of an owner at once are all counted.
func testChargesAtOnce(p *purses) {
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		id := fmt.Sprintf("s%d", w)
		p.session(id, "ada")
		wg.Go(func() {
			for range each {
				if err := p.use(id, 1); err != nil {
					p.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p.has("ada", "2026-07", spent(writers*each, writers*each))
}
