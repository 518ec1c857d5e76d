package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// A witness is an observer that keeps the commits that it is notified of. Every scenario
// of the suite has one, and compares it with the sessions that can be read.
type witness struct {
	late bool // it was registered when there were sessions already

	mu       sync.Mutex
	sessions map[string]*observed
	deleted  map[int64]bool // by Gen
	err      error          // the first thing that the store did wrong
	calling  atomic.Bool
}

// observed has the entry of a session and its newest records, as a witness knows them.
type observed struct {
	entry   tapedeck.Session
	records []tapedeck.Record
}

func newWitness() *witness {
	return &witness{sessions: map[string]*observed{}, deleted: map[int64]bool{}}
}

// committed is the Committed of an observer.
func (o *witness) committed(commits []tapedeck.Commit) {
	if !o.calling.CompareAndSwap(false, true) {
		panic("the store makes two calls at once")
	}
	defer o.calling.Store(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range commits {
		if err := o.add(&commits[i]); err != nil && o.err == nil {
			o.err = err
		}
	}
}

func (o *witness) add(c *tapedeck.Commit) error {
	id, first := c.Session.ID, c.Session.Head-int64(len(c.Records))
	for i, r := range c.Records {
		if r.Offset != first+int64(i) {
			return fmt.Errorf("a commit of %s to head %d has a record at offset %d", id, c.Session.Head, r.Offset)
		}
	}
	old := o.sessions[id]
	switch {
	case o.deleted[c.Session.Gen]:
		return fmt.Errorf("a commit of %s, which was deleted in an earlier commit: %+v", id, c)
	case c.Gone && len(c.Records) > 0:
		return fmt.Errorf("the commit that deletes %s has records", id)
	case c.Gone:
		delete(o.sessions, id)
		o.deleted[c.Session.Gen] = true
		return nil
	case old == nil:
		if first != c.Session.ForkedAt && !o.late {
			return fmt.Errorf("the first commit of %s begins at offset %d, not at %d", id, first, c.Session.ForkedAt)
		}
		old = &observed{}
		o.sessions[id] = old
	case old.entry.Gen != c.Session.Gen:
		return fmt.Errorf("%s was created again, but no commit says that it was deleted", id)
	case old.entry.Head != first:
		return fmt.Errorf("a commit of %s begins at offset %d, and the one before ended at %d", id, first, old.entry.Head)
	}
	if c.Erased {
		old.records = nil
	}
	old.entry, old.records = c.Session, append(old.records, c.Records...)
	return nil
}

// head returns the head of a session as of the newest commit, -1 for no session.
func (o *witness) head(id string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.sessions[id]; s != nil {
		return s.entry.Head
	}
	return -1
}

// watch registers the witness of a world with its store.
func (w *world) watch() { w.Observe(tapedeck.Observer{Committed: w.witness.committed}) }

// compareEntry compares the entry of a session with the one of its newest commit.
func (o *witness) compareEntry(s *tapedeck.Session) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	seen := o.sessions[s.ID]
	if seen == nil {
		return fmt.Errorf("observers do not know of %s", s.ID)
	}
	now, then := *s, seen.entry
	now.Totals, then.Totals = tapedeck.Totals{}, tapedeck.Totals{} // observers are not notified of new totals
	if d := cmp.Diff(now, then); d != "" {
		return fmt.Errorf("observers know another entry: (-head +observed)\n%s", d)
	}
	return nil
}

// compare compares the entry and the records.
func (o *witness) compare(w *world, s *tapedeck.Session) error {
	if err := o.compareEntry(s); err != nil {
		return err
	}
	o.mu.Lock()
	seen := *o.sessions[s.ID]
	o.mu.Unlock()
	pages, err := w.pages(s.ID, tapedeck.Range{From: s.Head - int64(len(seen.records))})
	if err != nil {
		return err
	}
	rest := seen.records
	for _, p := range pages {
		for i, r := range p.Records {
			if !bytes.Equal(r.Data, rest[i].Data) {
				return fmt.Errorf("observers got offset %d as %s, and it holds %s", r.Offset, rest[i].Data, r.Data)
			}
		}
		rest = rest[len(p.Records):]
	}
	return nil
}

func testObserve(t *testing.T, open opener) {
	t.Run("order of registration", func(t *testing.T) { testObserverOrder(t, start(t, open)) })
	t.Run("before the append returns", func(t *testing.T) { testObservedInTime(t, start(t, open)) })
	t.Run("what a commit did", func(t *testing.T) { testCommits(t, start(t, open)) })
	t.Run("while in use", func(t *testing.T) { testObserveInUse(t, start(t, open)) })
	t.Run("erasures", func(t *testing.T) { testObservedErasure(t, start(t, open)) })
	t.Run("a failing observer", func(t *testing.T) { t.Parallel(); testFailingObserver(t, start(t, open)) })
}

func testObserverOrder(t *testing.T, w *world) {
	var calls []string
	for _, name := range []string{"1", "2", "3"} {
		w.Observe(tapedeck.Observer{
			Committed: func([]tapedeck.Commit) { calls = append(calls, "commit "+name) },
			Erased: func(context.Context, string, []string) error {
				calls = append(calls, "erase "+name)
				return nil
			},
		})
	}
	w.Observe(tapedeck.Observer{}) // an observer of nothing
	w.play(create("a", with(2)), erase("a", 0, 1))
	want := []string{"commit 1", "commit 2", "commit 3", "commit 1", "commit 2", "commit 3", "erase 1", "erase 2", "erase 3"}
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// testObservedInTime: when an append returns, observers know of it.
func testObservedInTime(t *testing.T, w *world) {
	ids := []string{"a", "b", "stream/a"}
	for _, id := range ids {
		w.play(create(id))
	}
	n := rounds(40, 10)
	each(writers, func(i int) {
		id := ids[i%len(ids)]
		a := tapedeck.Append{Session: id}
		a.Events, a.Chunks = contents(id, []string{fmt.Sprint("writer ", i)})
		for range n {
			done, err := w.Append(w.ctx, a)
			if err != nil {
				t.Error(err)
				return
			}
			if head := w.witness.head(id); head < done.Next {
				t.Errorf("an append to %s ended at %d, and observers know it up to %d", id, done.Next, head)
			}
		}
	})
	for _, id := range ids {
		s := must(w.Head(w.ctx, id))(t)
		if err := w.witness.compare(w, &s); err != nil {
			t.Error(err)
		}
	}
}

// testCommits compares the commits of each call with what they must be.
func testCommits(t *testing.T, w *world) {
	type commit struct {
		ID      string
		Head    int64
		Offsets []int64
		Closed  bool
		Gone    bool
		Erased  bool
	}
	var got []commit
	w.Observe(tapedeck.Observer{Committed: func(commits []tapedeck.Commit) {
		for _, c := range commits {
			x := commit{ID: c.Session.ID, Head: c.Session.Head, Closed: c.Session.Closed, Gone: c.Gone, Erased: c.Erased}
			for _, r := range c.Records {
				x.Offsets = append(x.Offsets, r.Offset)
			}
			got = append(got, x)
		}
	}})
	for _, c := range []struct {
		do   step
		want []commit
	}{
		{create("a"), []commit{{ID: "a"}}},
		{create("a", existing()), nil},
		{write("a", 3), []commit{{ID: "a", Head: 3, Offsets: []int64{0, 1, 2}}}},
		{write("a", 1, expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)), nil},
		{create("b", from("a", 2), with(1)), []commit{{ID: "b", Head: 3, Offsets: []int64{2}}}},
		{create("c", from("b", 1)), []commit{{ID: "c", Head: 1}}},
		{erase("a", 0, 2, sharer{"b", 2}, sharer{"c", 1}), []commit{{ID: "a", Head: 4, Offsets: []int64{3}, Erased: true}}},
		{write("a", 1), []commit{{ID: "a", Head: 5, Offsets: []int64{4}}}},
		{write("a", 0, closing()), []commit{{ID: "a", Head: 5, Closed: true}}},
		{touch("a"), nil},
		{removeSoftly("a"), []commit{{ID: "a", Head: 5, Closed: true, Gone: true}}},
		{remove("c"), []commit{{ID: "c", Head: 1, Gone: true}}},
		{remove("b"), []commit{{ID: "b", Head: 3, Gone: true}}}, // and not "a" once more, which goes with it
		{create("b"), []commit{{ID: "b"}}},
		{create("stream/a", with(1)), []commit{{ID: "stream/a", Head: 1, Offsets: []int64{0}}}},
	} {
		got = nil
		w.play(c.do)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.do.name, d)
		}
	}
}

// testObserveInUse registers observers while others append. An observer is
// notified of everything that could not be read when Observe returned.
func testObserveInUse(t *testing.T, w *world) {
	w.play(create("a"))
	var stop atomic.Bool
	var appends sync.WaitGroup
	for range 8 {
		appends.Go(func() {
			for !stop.Load() {
				if _, err := w.Append(w.ctx, tapedeck.Append{Session: "a", Events: []tapedeck.Event{event("x")}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	late := make([]*witness, 20)
	heads := make([]int64, len(late))
	for i := range late {
		late[i] = newWitness()
		late[i].late = true
		w.Observe(tapedeck.Observer{Committed: late[i].committed})
		heads[i] = must(w.Head(w.ctx, "a"))(t).Head
	}
	stop.Store(true)
	appends.Wait()
	must(w.Append(w.ctx, tapedeck.Append{Session: "a", Events: []tapedeck.Event{event("the last")}}))(t)
	s := must(w.Head(w.ctx, "a"))(t)
	for i, o := range append(late, w.witness) {
		if err := o.compare(w, &s); err != nil {
			t.Errorf("observer %d: %v", i, err)
		} else if first := s.Head - int64(len(o.sessions["a"].records)); o.late && first > heads[i] {
			t.Errorf("observer %d knows nothing before offset %d, but the head was %d when it had been registered", i, first, heads[i])
		}
	}
}

// testObservedErasure: Erased is called after the commit and before Erase returns,
// and names the forks that share the events.
func testObservedErasure(t *testing.T, w *world) {
	w.play(create("a", with(4)), create("b", from("a", 2)), create("c", from("b", 2)), create("d", from("a", 1)))
	var calls [][]string
	w.Observe(tapedeck.Observer{Erased: func(ctx context.Context, session string, forks []string) error {
		slices.Sort(forks)
		calls = append(calls, append([]string{session}, forks...))
		p, err := w.Read(ctx, session, tapedeck.Range{From: 1, Limit: 1})
		if err != nil || p.Head != 5 {
			t.Errorf("in the call the head is %d, %v: it comes before the commit", p.Head, err)
		} else if text, err := textOf(session, p.Records[0]); err != nil || text != "" {
			t.Errorf("in the call offset 1 holds %s, %v", p.Records[0].Data, err)
		}
		return nil
	}})
	w.play(eraseFails("a", 9, 10, tapedeck.Invalid), eraseFails("b", 0, 1, tapedeck.Invalid))
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if _, err := w.Erase(ctx, erasure("a", 1, 4)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]string{{"a", "b", "c"}}, calls); d != "" {
		t.Errorf("when Erase returns: (-want +got)\n%s", d)
	}
}

// testFailingObserver: the error of an observer is that of the erasure, which has
// happened, and the store calls that observer again until it succeeds.
func testFailingObserver(t *testing.T, w *world) {
	fails, succeeded := rounds(2, 1), make(chan int) // a store may wait a second before its second attempt
	calls, others := 0, 0
	w.Observe(tapedeck.Observer{Erased: func(_ context.Context, session string, _ []string) error {
		if session != "a" {
			return nil
		}
		if calls++; calls <= fails {
			return errNo
		}
		succeeded <- calls
		return nil
	}})
	w.Observe(tapedeck.Observer{Erased: func(context.Context, string, []string) error {
		others++
		return nil
	}})
	w.play(create("a", with(2)), create("b", with(2)))
	_, err := w.Erase(w.ctx, erasure("a", 0, 2))
	if !errors.Is(err, errNo) {
		t.Errorf("got %v, want the error of the observer", err)
	}
	if err := isKind(err, tapedeck.Unavailable); err != nil {
		t.Error(err)
	}
	if others != 1 {
		t.Errorf("the other observer was called %d times, want once", others)
	}
	w.expected["a"].texts = []string{"", "", ""}
	w.play(readAll(), write("a", 1), erase("b", 0, 1))
	if n := <-succeeded; n != fails+1 {
		t.Errorf("it was called %d times, want %d", n, fails+1)
	}
	if others != 2 { // once for each erasure
		t.Errorf("the other observer was called %d times, want 2", others)
	}
}
