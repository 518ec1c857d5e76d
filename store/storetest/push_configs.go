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

// PushConfigs are the push notification configs that a store keeps.
type PushConfigs interface {
	Active(ctx context.Context, each func(session string, gen int64, task, id string, acked int64)) error
	Of(ctx context.Context, gen int64, task string) (map[string][]byte, error)
	Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error
	Ack(ctx context.Context, gen int64, task, id string, acked int64) error
	Delete(ctx context.Context, gen int64, task, id string) error
}

// RunPushConfigs runs the suite of the push notification configs of a store. open returns
// a new and empty store, and of returns the configs of an open store.
func RunPushConfigs(t *testing.T, open func(testing.TB) Store, of func(tapedeck.Store) PushConfigs) {
	for name, test := range map[string]func(*testing.T, *pushes){
		"configs": testPushConfigs, "deleted sessions": testPushConfigsOfDeleted, "expired sessions": testPushConfigsOfExpired,
		"erased sessions": testPushConfigsOfErased, "reopen": testPushConfigsReopen, "faults": testPushConfigFaults, "cancelled": testPushConfigsCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, &pushes{world: start(t, open), t: t, of: of}) })
	}
}

// pushes is a store with its configs.
type pushes struct {
	*world
	t  *testing.T
	of func(tapedeck.Store) PushConfigs
}

func (p *pushes) configs() PushConfigs { return p.of(p.Store.Store) }

func (p *pushes) gen(id string) int64 {
	p.t.Helper()
	return must(p.Head(p.ctx, id))(p.t).Gen
}

func (p *pushes) put(gen int64, task, id, config string, acked int64) {
	p.t.Helper()
	if err := p.configs().Put(p.ctx, gen, task, id, []byte(config), acked); err != nil {
		p.t.Fatal(err)
	}
}

// has compares the configs of a task, as "id=config".
func (p *pushes) has(gen int64, task string, want ...string) {
	p.t.Helper()
	var got []string
	all := must(p.configs().Of(p.ctx, gen, task))(p.t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		got = append(got, id+"="+string(all[id]))
	}
	if d := cmp.Diff(want, got); d != "" {
		p.t.Errorf("the configs of task %q (-want +got)\n%s", task, d)
	}
}

// active compares the active configs, as "session/task/id:acked".
func (p *pushes) active(want ...string) {
	p.t.Helper()
	var got []string
	gens := map[string]int64{}
	err := p.configs().Active(p.ctx, func(session string, gen int64, task, id string, acked int64) {
		gens[session] = gen
		got = append(got, fmt.Sprint(session, "/", task, "/", id, ":", acked))
	})
	for session, gen := range gens {
		if now := p.gen(session); now != gen {
			p.t.Errorf("the session %s has the gen %d, not %d", session, now, gen)
		}
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		p.t.Errorf("the active configs: %v (-want +got)\n%s", err, d)
	}
}

func testPushConfigs(t *testing.T, p *pushes) {
	p.active()
	p.play(create("x", with(3)), create("y"))
	x, y := p.gen("x"), p.gen("y")
	p.put(x, "inv", "a", "one", 1)
	p.put(x, "inv", "b", "\x00\xff", 0)
	p.put(x, "", "a", "session", 3)
	p.put(y, "inv", "a", "other", -1)
	p.has(x, "inv", "a=one", "b=\x00\xff")
	p.has(x, "", "a=session")
	p.has(y, "inv", "a=other")
	p.has(y, "none")
	p.active("x//a:3", "x/inv/a:1", "x/inv/b:0")
	for _, gen := range []int64{4711, 0, -1} {
		if err := isKind(p.configs().Put(p.ctx, gen, "inv", "a", []byte("x"), 0), tapedeck.NotFound); err != nil {
			t.Errorf("session %d: %v", gen, err)
		}
		p.has(gen, "inv")
	}
	p.put(x, "inv", "a", "two", 2) // instead of the first one
	for id, acked := range map[string]int64{"b": -1, "none": 5} {
		if err := p.configs().Ack(p.ctx, x, "inv", id, acked); err != nil {
			t.Fatal(err)
		}
	}
	p.has(x, "inv", "a=two", "b=\x00\xff")
	p.active("x//a:3", "x/inv/a:2")
	for range 2 { // the second time there is nothing to delete
		if err := p.configs().Delete(p.ctx, x, "inv", "a"); err != nil {
			t.Fatal(err)
		}
	}
	p.has(x, "inv", "b=\x00\xff")
	p.active("x//a:3")
}

// testPushConfigsOfDeleted: the configs of a deleted session are removed with it, and do
// not return with a session of its id. A fork has none.
func testPushConfigsOfDeleted(t *testing.T, p *pushes) {
	p.play(create("x", with(3)), create("y", with(1)))
	x, y := p.gen("x"), p.gen("y")
	p.put(x, "inv", "a", "secret", 2)
	p.put(y, "inv", "a", "secret", 1)
	p.play(create("fork", fromHead("x")))
	p.has(p.gen("fork"), "inv")
	p.play(removeSoftly("x"))
	p.has(x, "inv")
	p.active("y/inv/a:1")
	if err := isKind(p.configs().Put(p.ctx, x, "inv", "a", []byte("too late"), 3), tapedeck.NotFound); err != nil {
		t.Error(err)
	}
	p.play(remove("y"), create("y", with(1)))
	p.has(y, "inv")
	p.has(p.gen("y"), "inv")
	p.active()
}

func testPushConfigsOfExpired(_ *testing.T, p *pushes) {
	p.play(create("x", spec("for a minute", func(s *tapedeck.Spec) { s.TTL = time.Minute })))
	x := p.gen("x")
	p.put(x, "inv", "a", "secret", 0)
	p.Clock.Advance(2 * time.Minute)
	p.play(create("x"))
	p.has(x, "inv")
	p.active()
}

// testPushConfigsOfErased: a session of which everything is erased loses its configs, one
// of which a part is erased keeps them.
func testPushConfigsOfErased(_ *testing.T, p *pushes) {
	p.play(create("x", with(3)), create("y", with(3)))
	x, y := p.gen("x"), p.gen("y")
	p.put(x, "inv", "a", "secret", 2)
	p.put(y, "inv", "a", "secret", 2)
	p.play(erase("x", 0, 2), erase("y", 0, 3))
	p.has(x, "inv", "a=secret")
	p.has(y, "inv")
	p.active("x/inv/a:2")
}

func testPushConfigsReopen(t *testing.T, p *pushes) {
	if p.Reopen == nil {
		t.Skip("the store forgets")
	}
	p.play(create("x", with(3)))
	x := p.gen("x")
	p.put(x, "inv", "a", "one", 2)
	p.put(x, "inv", "b", "two", -1)
	p.reopen()
	p.has(x, "inv", "a=one", "b=two")
	p.active("x/inv/a:2")
}

// testPushConfigFaults: a change that fails changes nothing.
func testPushConfigFaults(t *testing.T, p *pushes) {
	if p.FailCommits == nil {
		t.Skip("the store has no commit that can be made to fail")
	}
	p.play(create("x", with(3)))
	x := p.gen("x")
	p.put(x, "inv", "a", "one", 1)
	p.FailCommits(true)
	for call, err := range map[string]error{
		"put":    p.configs().Put(p.ctx, x, "inv", "a", []byte("two"), 2),
		"ack":    p.configs().Ack(p.ctx, x, "inv", "a", 2),
		"delete": p.configs().Delete(p.ctx, x, "inv", "a"),
	} {
		if err := isKind(err, tapedeck.Unavailable); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	p.has(x, "inv", "a=one")
	p.active("x/inv/a:1")
	p.FailCommits(false)
	p.put(x, "inv", "a", "three", 3)
	p.has(x, "inv", "a=three")
	p.active("x/inv/a:3")
}

func testPushConfigsCancelled(t *testing.T, p *pushes) {
	p.play(create("x", with(1)))
	x := p.gen("x")
	p.put(x, "inv", "a", "one", 1)
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	c := p.configs()
	_, of := c.Of(ctx, x, "inv")
	for call, err := range map[string]error{
		"of": of, "put": c.Put(ctx, x, "inv", "b", []byte("x"), 0), "ack": c.Ack(ctx, x, "inv", "a", 0), "delete": c.Delete(ctx, x, "inv", "a"),
		"active": c.Active(ctx, func(string, int64, string, string, int64) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
	p.has(x, "inv", "a=one")
	p.active("x/inv/a:1")
}
