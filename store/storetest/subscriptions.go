package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// Subscriptions are the subscriptions that a store keeps.
type Subscriptions interface {
	All(ctx context.Context) (map[string][]byte, error)
	Put(ctx context.Context, id string, state []byte, acked map[int64]int64) error
	Delete(ctx context.Context, id string) error
	Acked(ctx context.Context, id string, gen int64) (int64, bool, error)
	Acks(ctx context.Context, id string, each func(session string, gen, acked int64)) error
}

// RunSubscriptions runs the suite of the subscriptions of a store. open returns a new
// and empty store, and of returns the subscriptions of an open store.
func RunSubscriptions(t *testing.T, open func(testing.TB) Store, of func(tapedeck.Store) Subscriptions) {
	for name, test := range map[string]func(*testing.T, *subscribers){
		"states": testStates, "acks": testAcks, "deleted sessions": testAcksOfDeleted, "expired sessions": testAcksOfExpired,
		"reopen": testSubscriptionsReopen, "faults": testSubscriptionFaults, "cancelled": testSubscriptionsCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, &subscribers{world: start(t, open), t: t, of: of}) })
	}
}

// subscribers is a store with its subscriptions.
type subscribers struct {
	*world
	t  *testing.T
	of func(tapedeck.Store) Subscriptions
}

func (s *subscribers) subs() Subscriptions { return s.of(s.Store.Store) }

func (s *subscribers) gen(id string) int64 {
	s.t.Helper()
	return must(s.Head(s.ctx, id))(s.t).Gen
}

func (s *subscribers) put(id, state string, acked map[int64]int64) {
	s.t.Helper()
	var b []byte
	if state != "" {
		b = []byte(state)
	}
	if err := s.subs().Put(s.ctx, id, b, acked); err != nil {
		s.t.Fatal(err)
	}
}

// has compares the states, as "id=state".
func (s *subscribers) has(want ...string) {
	s.t.Helper()
	var got []string
	all := must(s.subs().All(s.ctx))(s.t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		got = append(got, id+"="+string(all[id]))
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("the subscriptions (-want +got)\n%s", d)
	}
}

// acked compares what a subscription has acknowledged, as "session:offset", from the
// list and one by one.
func (s *subscribers) acked(id string, want ...string) {
	s.t.Helper()
	var got []string
	gens := map[int64]int64{}
	err := s.subs().Acks(s.ctx, id, func(session string, gen, acked int64) {
		got = append(got, fmt.Sprint(session, ":", acked))
		gens[gen] = acked
	})
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		s.t.Errorf("acknowledged by %s: %v (-want +got)\n%s", id, err, d)
	}
	for gen, want := range gens {
		if at, ok, err := s.subs().Acked(s.ctx, id, gen); at != want || !ok || err != nil {
			s.t.Errorf("%s has acknowledged session %d up to %d, %t, %v; want %d", id, gen, at, ok, err, want)
		}
	}
}

func testStates(t *testing.T, s *subscribers) {
	s.has()
	s.put("a", `{"n":1}`, nil)
	s.put("b", `{"text":"ü 'x'"}`, nil)
	s.put("a", `{"n":2}`, nil)
	s.put("a", "", nil)
	s.has(`a={"n":2}`, `b={"text":"ü 'x'"}`)
	for range 2 { // the second time there is nothing to delete
		if err := s.subs().Delete(s.ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	s.has(`b={"text":"ü 'x'"}`)
}

func testAcks(t *testing.T, s *subscribers) {
	s.play(create("x", with(3)), create("stream/y", with(2)), create("z"))
	x, y := s.gen("x"), s.gen("stream/y")
	s.put("a", "{}", map[int64]int64{x: 1, y: 2})
	s.put("b", "", map[int64]int64{x: 3}) // before its state
	s.acked("a", "stream/y:2", "x:1")
	s.acked("b", "x:3")
	s.has("a={}")
	s.put("a", `{"n":1}`, map[int64]int64{x: 0, 4711: 9}) // an offset may become smaller; there is no session 4711
	s.acked("a", "stream/y:2", "x:0")
	for _, gen := range []int64{s.gen("z"), 4711, 0, -1} {
		if at, ok, err := s.subs().Acked(s.ctx, "a", gen); at != 0 || ok || err != nil {
			t.Errorf("session %d: %d, %t, %v", gen, at, ok, err)
		}
	}
	if err := s.subs().Delete(s.ctx, "a"); err != nil {
		t.Fatal(err)
	}
	s.acked("a")
	s.acked("b", "x:3")
	s.has()
}

// testAcksOfDeleted: what was acknowledged of a deleted session is removed with it, and
// does not return with a session of its id.
func testAcksOfDeleted(t *testing.T, s *subscribers) {
	s.play(create("x", with(3)), create("fork", fromHead("x")), create("y", with(1)))
	x, y := s.gen("x"), s.gen("y")
	s.put("a", "{}", map[int64]int64{x: 2, y: 1})
	s.play(removeSoftly("x"))
	s.acked("a", "y:1")
	s.put("a", "", map[int64]int64{x: 3}) // too late
	s.play(remove("y"), create("y", with(1)))
	s.acked("a")
	s.play(remove("fork"), vanished("x"), create("x"))
	s.acked("a")
	if at, ok, err := s.subs().Acked(s.ctx, "a", x); ok || err != nil {
		t.Errorf("the deleted session: %d, %t, %v", at, ok, err)
	}
}

func testAcksOfExpired(t *testing.T, s *subscribers) {
	s.play(create("stream/x", spec("for a minute", func(s *tapedeck.Spec) { s.TTL = time.Minute })))
	s.put("a", "{}", map[int64]int64{s.gen("stream/x"): 0})
	s.acked("a", "stream/x:0")
	s.Clock.Advance(2 * time.Minute)
	s.play(create("stream/x"))
	s.acked("a")
}

func testSubscriptionsReopen(t *testing.T, s *subscribers) {
	if s.Reopen == nil {
		t.Skip("the store forgets")
	}
	s.play(create("x", with(3)))
	s.put("a", `{"n":1}`, map[int64]int64{s.gen("x"): 2})
	s.reopen()
	s.has(`a={"n":1}`)
	s.acked("a", "x:2")
}

// testSubscriptionFaults: a Put that fails changes nothing.
func testSubscriptionFaults(t *testing.T, s *subscribers) {
	if s.FailCommits == nil {
		t.Skip("the store has no commit that can be made to fail")
	}
	s.play(create("x", with(3)))
	x := s.gen("x")
	s.put("a", `{"n":1}`, map[int64]int64{x: 1})
	s.FailCommits(true)
	for call, err := range map[string]error{
		"put":    s.subs().Put(s.ctx, "a", []byte(`{"n":2}`), map[int64]int64{x: 2}),
		"delete": s.subs().Delete(s.ctx, "a"),
	} {
		if err := isKind(err, tapedeck.Unavailable); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	s.has(`a={"n":1}`)
	s.acked("a", "x:1")
	s.FailCommits(false)
	s.put("a", `{"n":3}`, map[int64]int64{x: 3})
	s.has(`a={"n":3}`)
	s.acked("a", "x:3")
}

func testSubscriptionsCancelled(t *testing.T, s *subscribers) {
	s.put("a", "{}", nil)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, all := s.subs().All(ctx)
	_, _, acked := s.subs().Acked(ctx, "a", 1)
	for call, err := range map[string]error{
		"all": all, "acked": acked, "put": s.subs().Put(ctx, "b", []byte("{}"), nil), "delete": s.subs().Delete(ctx, "a"),
		"acks": s.subs().Acks(ctx, "a", func(string, int64, int64) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
	s.has("a={}")
}
