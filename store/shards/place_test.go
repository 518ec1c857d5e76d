package shards_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/shards"
)

// TestHome: where an id belongs never changes, because data is stored by it.
func TestHome(t *testing.T) {
	var got []int
	for _, id := range []string{"a", "b", "ses_01jz", "stream/x", ""} {
		got = append(got, shards.Home(id, 3), shards.Home(id, 16))
	}
	if d := cmp.Diff([]int{2, 14, 2, 13, 0, 7, 1, 13, 1, 3}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	sizes := make([]int, 4)
	for i := range 4000 {
		id := fmt.Sprint("ses_", i)
		at := shards.Home(id, 4)
		sizes[at]++
		if three := shards.Home(id, 3); at != 3 && at != three {
			t.Fatalf("%s moves from %d to %d when there is a shard more", id, three, at)
		}
	}
	if slices.Min(sizes) < 850 || slices.Max(sizes) > 1150 {
		t.Errorf("the shards have %v of 4,000 ids", sizes)
	}
}

// A trio is a store of three shards in memory.
type trio struct {
	*shards.Store
	t        *testing.T
	memories []*memory.Store
	list     []shards.Shard
	numbers  *shards.Numbers
	fail     [count]atomic.Bool // commits of a shard fail
}

func newTrio(t *testing.T) *trio {
	numbers := new(shards.Numbers)
	w := &trio{t: t, numbers: numbers}
	for i := range count {
		m := memory.New(memory.Options{NextGen: numbers.Of(i), FailCommit: func() error {
			if w.fail[i].Load() {
				return errors.New("disk full")
			}
			return nil
		}})
		w.memories, w.list = append(w.memories, m), append(w.list, ofMemory(m))
	}
	w.Store = join(t, w.list, numbers)
	return w
}

// id returns an id that belongs to a shard, another one for each n.
func id(at, n int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("s%d", i); shards.Home(id, count) == at {
			if n--; n < 0 {
				return id
			}
		}
	}
}

func (w *trio) create(id, parent string) tapedeck.Session {
	w.t.Helper()
	done, err := w.Create(w.t.Context(), tapedeck.Spec{ID: id, Parent: parent, Events: []tapedeck.Event{{Type: tapedeck.Custom}}})
	if err != nil || !done.New {
		w.t.Fatalf("create %s: new %t, %v", id, done.New, err)
	}
	return done.Session
}

// at returns the shards that have a session.
func (w *trio) at(id string) (out []int) {
	for i, m := range w.memories {
		if _, err := m.Head(w.t.Context(), id); err == nil {
			out = append(out, i)
		}
	}
	return out
}

func (w *trio) isAt(id string, want ...int) {
	w.t.Helper()
	if got := w.at(id); !slices.Equal(got, want) {
		w.t.Errorf("%s is in the shards %v, want %v", id, got, want)
	}
}

func (w *trio) verify() []string {
	w.t.Helper()
	r := new(store.Report)
	err := shards.Verify(count, func(i int, each func(string, tapedeck.SessionKind, string)) error {
		for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, store.KindPointer} {
			page, err := w.memories[i].List(w.t.Context(), tapedeck.Filter{Kind: kind, Limit: 1000})
			if err != nil {
				return err
			}
			for _, s := range page.Sessions {
				each(s.ID, s.Kind, s.Origin)
			}
		}
		return nil
	}, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Problems
}

// TestForkIsWithItsParent: a fork is in the shard of its parent, whatever its id is, and is
// found there, also by a store that has just been opened. Nobody sees the pointer.
func TestForkIsWithItsParent(t *testing.T) {
	w := newTrio(t)
	var seen []string
	w.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		for _, c := range commits {
			seen = append(seen, c.Session.ID)
		}
	}})
	root, away, grandchild := id(0, 0), id(1, 0), id(2, 0)
	w.create(root, "")
	w.create(away, root)
	w.create(grandchild, away)
	w.isAt(away, 0)
	w.isAt(grandchild, 0)
	w.isAt(store.PointerPrefix+away, 1)
	again := join(t, w.list, new(shards.Numbers))
	for i, s := range []string{root, away, grandchild} {
		page, err := again.Read(t.Context(), s, tapedeck.Range{})
		if err != nil || len(page.Records) != i+1 {
			t.Errorf("%s has %d records, %v", s, len(page.Records), err)
		}
	}
	if want := []string{root, away, grandchild}; !slices.Equal(seen, want) {
		t.Errorf("observers saw %v, want %v", seen, want)
	}
	page, err := again.List(t.Context(), tapedeck.Filter{Parent: root})
	if err != nil || len(page.Sessions) != 1 || page.Sessions[0].ID != away {
		t.Errorf("the forks are %v, %v", page.Sessions, err)
	}
	if got := w.verify(); got != nil {
		t.Errorf("verify says %v", got)
	}
}

// TestPointerWithoutFork: a server that dies between the pointer and the fork leaves nothing
// that anybody sees, and the id can be used for a session with or without a parent.
func TestPointerWithoutFork(t *testing.T) {
	for name, parent := range map[string]string{"no parent": "", "the same parent": id(0, 0), "a parent elsewhere": id(2, 0), "a parent at home": id(1, 1)} {
		t.Run(name, func(t *testing.T) {
			w := newTrio(t)
			ctx, fork := t.Context(), id(1, 0)
			for _, s := range []string{id(0, 0), id(2, 0), id(1, 1)} {
				w.create(s, "")
			}
			w.fail[0].Store(true)
			if _, err := w.Create(ctx, tapedeck.Spec{ID: fork, Parent: id(0, 0)}); tapedeck.KindOf(err) != tapedeck.Unavailable {
				t.Fatalf("create gives %v", err)
			}
			w.fail[0].Store(false)
			w.isAt(store.PointerPrefix+fork, 1)
			again := join(t, w.list, new(shards.Numbers))
			if _, err := again.Head(ctx, fork); tapedeck.KindOf(err) != tapedeck.NotFound {
				t.Errorf("head gives %v", err)
			}
			if page, err := again.List(ctx, tapedeck.Filter{}); err != nil || len(page.Sessions) != 3 {
				t.Errorf("the list has %d sessions, %v", len(page.Sessions), err)
			}
			w.create(fork, parent)
			if len(w.at(fork)) != 1 || w.verify() != nil {
				t.Errorf("it is in %v; verify says %v", w.at(fork), w.verify())
			}
			if done, err := again.Create(ctx, tapedeck.Spec{ID: fork}); err != nil || done.New || done.Session.Parent != parent {
				t.Errorf("a second create gives %+v, %v", done, err)
			}
		})
	}
}

// TestRefusedForkLeavesNoPointer: a fork that is refused leaves nothing.
func TestRefusedForkLeavesNoPointer(t *testing.T) {
	w := newTrio(t)
	w.create(id(0, 0), "")
	_, err := w.Create(t.Context(), tapedeck.Spec{ID: id(1, 0), Parent: id(0, 0), ForkAt: new(int64(99))})
	if tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("create gives %v", err)
	}
	w.isAt(store.PointerPrefix + id(1, 0))
}

// TestPointerOfDeletedFork: the pointer of a fork that was deleted is removed, but not before
// the forks of that fork are deleted.
func TestPointerOfDeletedFork(t *testing.T) {
	w := newTrio(t)
	ctx, root, fork, grandchild := t.Context(), id(0, 0), id(1, 0), id(0, 1)
	removed := make(chan string, 10)
	w.memories[1].Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		if commits[0].Gone {
			removed <- commits[0].Session.ID
		}
	}})
	w.create(root, "")
	w.create(fork, root)
	w.create(grandchild, fork)
	for _, s := range []string{fork, grandchild} {
		if err := w.Delete(ctx, s); err != nil {
			t.Fatal(err)
		}
		if s == fork {
			if _, err := w.Create(ctx, tapedeck.Spec{ID: fork}); tapedeck.KindOf(err) != tapedeck.Conflict {
				t.Errorf("while the grandchild needs it, a create gives %v", err)
			}
		}
	}
	if got := <-removed; got != store.PointerPrefix+fork {
		t.Errorf("removed is %s", got)
	}
	w.create(fork, "")
	w.isAt(fork, 1)
}

// TestSessionAtHomeAndPointer: a session that is at home although there is a pointer, as
// after a commit whose answer was lost, is the only one of its id.
func TestSessionAtHomeAndPointer(t *testing.T) {
	w := newTrio(t)
	ctx := t.Context()
	w.create(id(1, 0), "")
	if _, err := w.memories[1].Create(ctx, tapedeck.Spec{ID: store.PointerPrefix + id(1, 0), Kind: store.KindPointer, Origin: "0"}); err != nil {
		t.Fatal(err)
	}
	w.create(id(0, 0), "")
	for _, parent := range []string{"", id(0, 0)} {
		if done, err := w.Create(ctx, tapedeck.Spec{ID: id(1, 0), Parent: parent}); err != nil || done.New {
			t.Errorf("a create with the parent %q gives new %t, %v", parent, done.New, err)
		}
	}
	w.isAt(id(1, 0), 1)
}

// TestNumbersGoOn: a store that is opened again numbers sessions after all that ever were,
// also after those that were deleted in another shard.
func TestNumbersGoOn(t *testing.T) {
	w := newTrio(t)
	for i := range 5 {
		w.create(id(0, i), "")
	}
	last := w.create(id(0, 9), "").Gen
	for _, s := range append([]string{id(0, 9)}, id(0, 0), id(0, 1), id(0, 2), id(0, 3), id(0, 4)) {
		if err := w.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	*w.numbers = shards.Numbers{}
	w.Store = join(t, w.list, w.numbers)
	if s := w.create(id(1, 0), ""); s.Gen <= last {
		t.Errorf("the gen is %d, and %d was used before", s.Gen, last)
	}
}

// A slow store lets others go on after each call that looks for a session.
type slow struct{ *memory.Store }

func (s slow) Head(ctx context.Context, id string) (tapedeck.Session, error) {
	defer letOthersGoOn()
	return s.Store.Head(ctx, id)
}

func (s slow) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	defer letOthersGoOn()
	return s.Store.Append(ctx, a)
}

func letOthersGoOn() {
	for range rand.IntN(60) {
		runtime.Gosched()
	}
}

// TestOneIdOnce: of many creates of one id, with parents in all shards and without, one
// succeeds, and the session is in one shard.
func TestOneIdOnce(t *testing.T) {
	w := newTrio(t)
	for i, m := range w.memories {
		w.list[i].Store = slow{m}
	}
	w.Store = join(t, w.list, w.numbers)
	ctx := t.Context()
	parents := []string{"", id(0, 0), id(1, 0), id(2, 0)}
	for _, p := range parents[1:] {
		w.create(p, "")
	}
	for round := range 20 {
		var news atomic.Int64
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range 16 {
			wg.Go(func() {
				<-begin
				done, err := w.Create(ctx, tapedeck.Spec{ID: id(0, 10+round), Parent: parents[i%len(parents)]})
				if err != nil {
					t.Error(err)
				}
				if done.New {
					news.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		if got := w.at(id(0, 10+round)); news.Load() != 1 || len(got) != 1 {
			t.Fatalf("%d creates were new, and the shards %v have it", news.Load(), got)
		}
	}
	if got := w.verify(); got != nil {
		t.Errorf("verify says %v", got)
	}
}

// TestOneShardIsDown: its sessions are unavailable, those of the others work, and what needs
// all shards says so.
func TestOneShardIsDown(t *testing.T) {
	w := newTrio(t)
	ctx := t.Context()
	for i := range count {
		w.create(id(i, 0), "")
	}
	w.create(id(2, 5), id(0, 0)) // its pointer is in the shard that goes
	if err := w.memories[2].Close(); err != nil {
		t.Fatal(err)
	}
	add := func(s string) error {
		_, err := w.Append(ctx, tapedeck.Append{Session: s, Events: []tapedeck.Event{{Type: tapedeck.Custom}}})
		return err
	}
	for _, s := range []string{id(0, 0), id(1, 0), id(2, 5)} {
		if err := add(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := w.Ready(ctx); err != nil {
		t.Errorf("it is not ready: %v", err)
	}
	if page, err := w.List(ctx, tapedeck.Filter{Parent: id(0, 0)}); err != nil || len(page.Sessions) != 1 {
		t.Errorf("the forks are %v, %v", page.Sessions, err)
	}
	pending, _, err := w.Index().Unindexed(ctx, 10)
	if err != nil || len(pending) != 3 {
		t.Errorf("to be indexed are %v, %v", pending, err)
	}
	_, listErr := w.List(ctx, tapedeck.Filter{})
	_, searchErr := w.Index().Search(ctx, search.Query{Text: "x"})
	_, spentErr := w.Spending().Of(ctx, "ada", "2026-01")
	_, diagramsErr := w.Workflows().List(ctx)
	for what, err := range map[string]error{"append": add(id(2, 0)), "list": listErr, "search": searchErr, "spending": spentErr, "workflows": diagramsErr} {
		if tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("%s gives %v", what, err)
		}
		if what != "append" && !strings.Contains(err.Error(), "database 3 of 3 does not answer") {
			t.Errorf("%s does not say which one: %v", what, err)
		}
	}
	for i := range 2 {
		_ = w.memories[i].Close()
	}
	if err := w.Ready(ctx); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("with no shard, ready gives %v", err)
	}
}

// TestPagesOverShards: pages of a list have each session once and in order, however the
// sessions lie in the shards, and also while others are created.
func TestPagesOverShards(t *testing.T) {
	w := newTrio(t)
	var want []string
	for i := range 50 {
		s := id(i*i%count, 20+i)
		w.create(s, "")
		want = append([]string{s}, want...)
	}
	for _, limit := range []int{1, 7, 25, 50, 100} {
		var got []string
		f := tapedeck.Filter{Limit: limit}
		for {
			page, err := w.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Sessions {
				got = append(got, s.ID)
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				break
			}
			w.create(id(limit%count, 200+len(got)+1000*limit), "")
			want := page.Sessions[len(page.Sessions)-1].ID
			if got[len(got)-1] != want {
				t.Fatal("the page is not in order")
			}
		}
		old := got[len(got)-len(want):]
		if d := cmp.Diff(want, old); d != "" {
			t.Fatalf("limit %d: (-want +got)\n%s", limit, d)
		}
	}
}

// TestVerify: what cannot be found, or is there twice, is a problem.
func TestVerify(t *testing.T) {
	w := newTrio(t)
	ctx, root, fork := t.Context(), id(0, 0), id(1, 0)
	w.create(root, "")
	w.create(fork, root)
	if err := w.memories[1].Delete(ctx, store.PointerPrefix+fork); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(); len(got) != 1 || !strings.Contains(got[0], "it cannot be read") {
		t.Errorf("without the pointer, verify says %q", got)
	}
	if _, err := w.memories[1].Create(context.Background(), tapedeck.Spec{ID: fork, Kind: tapedeck.KindSession}); err != nil {
		t.Fatal(err)
	}
	if got := w.verify(); len(got) == 0 || !strings.Contains(got[0], "is in database 2 and in database 1") {
		t.Errorf("with the session in two shards, verify says %q", got)
	}
}
