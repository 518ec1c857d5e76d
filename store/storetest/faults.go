package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// failCommits makes commits fail, or succeed again.
func failCommits(fail bool) step {
	return step{fmt.Sprintf("let commits fail: %t", fail), func(w *world) error {
		w.FailCommits(fail)
		return nil
	}}
}

// deleteFails expects that a delete fails.
func deleteFails(id string, k tapedeck.Kind) step {
	return step{"delete " + id + ", which fails: " + string(k), func(w *world) error { return isKind(w.Delete(w.ctx, id), k) }}
}

func testFaults(t *testing.T, open opener) {
	if s := start(t, open); s.FailCommits == nil {
		t.Skip("the store has no commit that can be made to fail")
	}
	const no = tapedeck.Unavailable
	for _, p := range []string{"", "stream/"} {
		a, b := p+"a", p+"b"
		play(t, open, "an append/"+a, create(a), write(a, 3), failCommits(true), write(a, 2, fails(no)), readAll(), write(a, 1, fails(no)),
			failCommits(false), readAll(), write(a, 2, expecting(3)), write(a, 1))
		play(t, open, "a producer/"+a, create(a), write(a, 1, by("w", 0, 0), sequence("b")), failCommits(true),
			write(a, 1, by("w", 0, 1), sequence("c"), fails(no)), write(a, 1, by("w", 1, 0), fails(no)),
			write(a, 1, by("x", 0, 0), fails(no)),
			failCommits(false), write(a, 1, by("x", 0, 1), gap(0)), write(a, 1, by("w", 0, 1), sequence("c")))
		play(t, open, "closing/"+a, create(a), write(a, 1), failCommits(true), write(a, 1, closing(), fails(no)),
			write(a, 0, closing(), fails(no)), readAll(),
			failCommits(false), write(a, 1), write(a, 0, closing()))
		play(t, open, "creating/"+a, create(a, with(2)), failCommits(true), create(b, with(1), failing(no)),
			create(b, fromHead(a), failing(no)),
			failCommits(false), is(b, tapedeck.NotFound), remove(a), create(b, with(1)))
		play(t, open, "deleting/"+a, create(a, with(2)), create(b, from(a, 1)), failCommits(true), deleteFails(a, no),
			deleteFails(b, no), readAll(),
			failCommits(false), readAll(), write(a, 1), write(b, 1), removeSoftly(a), failCommits(true),
			deleteFails(b, no), failCommits(false), is(a, tapedeck.Gone), remove(b), vanished(a))
	}
	play(t, open, "a run", create("a"), failCommits(true),
		write("a", 0, events(tapedeck.Event{Type: "RUN_STARTED", Invocation: "i"}), fails(no)), failCommits(false),
		looks("a", "is idle", idle), runs("a", "RUN_STARTED", "i"))
	t.Run("a group", func(t *testing.T) { testFailingGroup(t, start(t, open)) })
}

// testFailingGroup has many writers at once. Some repeat the appends of others, and
// some expect the same head. While commits fail, every append must fail: no answer
// may report a duplicate or a head that was never committed. Afterwards there must be
// no hole.
func testFailingGroup(t *testing.T, w *world) {
	w.play(create("a"), create("b"), write("a", 2), write("b", 2))
	for range rounds(20, 5) {
		w.play(failCommits(true))
		heads := map[string]int64{"a": int64(len(w.expected["a"].texts)), "b": int64(len(w.expected["b"].texts))}
		texts := w.texts(2)
		each(writers, func(i int) {
			id := []string{"a", "b"}[i%2]
			head := heads[id]
			a := tapedeck.Append{Session: id, Producer: &tapedeck.Producer{ID: fmt.Sprint("w", i/4)}}
			a.Events, _ = contents(id, texts)
			if i%3 == 0 {
				a.Expect, a.Producer = &head, nil
			}
			_, err := w.Append(w.ctx, a)
			if err := isKind(err, tapedeck.Unavailable); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			if p, err := w.Read(w.ctx, id, tapedeck.Range{From: head}); err != nil || p.Head != head || len(p.Records) > 0 {
				t.Errorf("reader %d: got %+v, %v, want nothing beyond %d", i, p, err, head)
			}
		})
		if t.Failed() {
			return
		}
		w.play(readAll(), failCommits(false), readAll(), write("a", 1), write("b", 1))
	}
	w.play(readAll())
	if w.Reopen != nil {
		w.play(reopen(), readAll())
	}
}

func testClose(t *testing.T, open opener) {
	t.Run("later calls", func(t *testing.T) {
		w := start(t, open)
		w.play(create("a", with(1)))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for call, err := range w.calls(w.ctx) {
			if err := isKind(err, tapedeck.Unavailable); err != nil {
				t.Errorf("%s: %v", call, err)
			}
		}
		_ = w.Close() // it may fail, but must not hang or panic
	})
	t.Run("under way", func(t *testing.T) { testCloseUnderWay(t, start(t, open)) })
}

// calls makes every call on session a and returns the errors.
func (w *world) calls(ctx context.Context) map[string]error {
	out := map[string]error{}
	_, out["append"] = w.Append(ctx, tapedeck.Append{Session: "a", Events: []tapedeck.Event{event("x")}})
	_, out["read"] = w.Read(ctx, "a", tapedeck.Range{})
	_, out["head"] = w.Head(ctx, "a")
	_, out["create"] = w.Create(ctx, tapedeck.Spec{ID: "b", Kind: tapedeck.KindSession})
	_, out["create again"] = w.Create(ctx, tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession})
	out["delete"] = w.Delete(ctx, "a")
	_, out["list"] = w.List(ctx, tapedeck.Filter{})
	out["touch"] = w.Touch(ctx, "a")
	_, out["erase"] = w.Erase(ctx, erasure("a", 0, 1))
	return out
}

// testCloseUnderWay closes the store while many goroutines append. Afterwards it has
// exactly the acknowledged appends.
func testCloseUnderWay(t *testing.T, w *world) {
	w.play(create("a"))
	acked := make([][]string, writers)
	const limit = 2_000 // appends of one writer
	texts := w.texts(writers * limit)
	closing := make(chan struct{})
	var count atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		<-closing
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	each(writers, func(i int) {
		for _, text := range texts[i*limit:][:limit] {
			a := tapedeck.Append{Session: "a"}
			a.Events, _ = contents("a", []string{text})
			if _, err := w.Append(w.ctx, a); err != nil {
				if err := isKind(err, tapedeck.Unavailable); err != nil {
					t.Error(err)
				}
				break
			}
			acked[i] = append(acked[i], text)
			if count.Add(1) == 200 {
				close(closing)
			}
		}
	})
	if count.Load() < 200 {
		close(closing)
	}
	wg.Wait()
	if w.Reopen == nil {
		return
	}
	w.play(reopen())
	got := must(w.readTexts("a", tapedeck.Range{}))(t)
	if err := interleaved(acked, got); err != nil {
		t.Error(err)
	}
}

func testCancelled(t *testing.T, open opener) {
	w := start(t, open)
	w.play(create("a", with(2)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for call, err := range w.calls(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the error of the context", call, err)
		}
	}
	w.play(readAll(), is("b", tapedeck.NotFound), write("a", 1), readAll())
	if w.Reopen != nil {
		w.play(reopen(), readAll())
	}
}

// interleaved returns an error unless all consists of the elements of parts, those of
// each part in their order.
func interleaved(parts [][]string, all []string) error {
	owner := map[string]int{}
	for i, part := range parts {
		for _, text := range part {
			owner[text] = i
		}
	}
	got := make([][]string, len(parts))
	for offset, text := range all {
		i, ok := owner[text]
		if !ok {
			return fmt.Errorf("offset %d holds %q, which was not acknowledged", offset, text)
		}
		got[i] = append(got[i], text)
	}
	for i, part := range parts {
		if d := cmp.Diff(part, got[i]); d != "" {
			return fmt.Errorf("of writer %d: (-acknowledged +read)\n%s", i, d)
		}
	}
	return nil
}
