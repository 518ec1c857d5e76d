package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func testRaces(t *testing.T, open opener) {
	t.Run("one head", func(t *testing.T) { testOneHead(t, start(t, open)) })
	t.Run("one run", func(t *testing.T) { testOneRun(t, start(t, open)) })
	t.Run("one creation", func(t *testing.T) { testOneCreation(t, start(t, open)) })
	t.Run("the good and the bad", func(t *testing.T) { testMixed(t, start(t, open)) })
	t.Run("forks come and go", func(t *testing.T) { testForksComeAndGo(t, start(t, open)) })
}

// testOneHead lets all writers expect the same head. One of them succeeds.
func testOneHead(t *testing.T, w *world) {
	w.play(create("a"))
	for head := range int64(rounds(50, 10)) {
		var won atomic.Int32
		events := make([][]tapedeck.Event, writers)
		for i := range events {
			events[i] = []tapedeck.Event{event("x")}
		}
		each(writers, func(i int) {
			_, err := w.Append(w.ctx, tapedeck.Append{Session: "a", Events: events[i], Expect: &head})
			var refusal *tapedeck.AppendError
			switch {
			case err == nil:
				won.Add(1)
			case !errors.As(err, &refusal) || refusal.Refusal != tapedeck.RefusedOffset || refusal.Head != head+1:
				t.Errorf("got %v (%+v), want a refusal at head %d", err, refusal, head+1)
			}
		})
		if n := won.Load(); n != 1 {
			t.Fatalf("at head %d %d appends were accepted, want 1", head, n)
		}
	}
}

// testOneRun lets all writers start a run if none is open, as engines do. Check is
// called on the goroutine that writes, so it needs no lock; the race detector reports
// a store that does otherwise.
func testOneRun(t *testing.T, w *world) {
	w.play(create("a"))
	calls, won := 0, atomic.Int32{}
	errBusy := errors.New("a run is open")
	each(writers, func(i int) {
		_, err := w.Append(w.ctx, tapedeck.Append{
			Session: "a",
			Events:  []tapedeck.Event{{Type: "RUN_STARTED", Invocation: fmt.Sprint("i", i)}},
			Check: func(s *tapedeck.Session) error {
				calls++
				if len(s.Runs) > 0 {
					return errBusy
				}
				return nil
			},
		})
		if err == nil {
			won.Add(1)
		} else if err != errBusy {
			t.Error(err)
		}
	})
	s := must(w.Head(w.ctx, "a"))(t)
	if won.Load() != 1 || calls != writers || len(s.Runs) != 1 || s.Head != 1 {
		t.Errorf("%d runs started in %d checks, and %d are open; the head is %d", won.Load(), calls, len(s.Runs), s.Head)
	}
}

// testOneCreation lets all writers create the same session. One of them succeeds.
func testOneCreation(t *testing.T, w *world) {
	var mu sync.Mutex
	var winner []string
	gens := map[int64]bool{}
	texts := w.texts(writers)
	each(writers, func(i int) {
		done, err := w.Create(w.ctx, tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession, Events: []tapedeck.Event{event(texts[i])}})
		mu.Lock()
		defer mu.Unlock()
		if err != nil || done.Session.Head != 1 {
			t.Errorf("got %+v, %v", done, err)
		}
		gens[done.Session.Gen] = true
		if done.New {
			winner = append(winner, texts[i])
		}
	})
	if len(winner) != 1 || len(gens) != 1 {
		t.Fatalf("%d made it, in %d generations", len(winner), len(gens))
	}
	*w.session("a") = expected{texts: winner}
	w.play(readAll())
}

// testMixed lets appends that are refused, that fail and that succeed share commits.
// None of them may affect another.
func testMixed(t *testing.T, w *world) {
	w.play(create("a"), create("b", closed()), create("c"))
	n := rounds(40, 10)
	texts := w.texts(writers * n)
	ten := int64(1 << 40)
	var good [writers][]string
	each(writers, func(i int) {
		for j := range n {
			text := texts[i*n+j]
			a := tapedeck.Append{Session: "a"}
			a.Events, _ = contents("a", []string{text})
			want := tapedeck.Kind("")
			switch i % 8 {
			case 0:
				a.Session, want = "nowhere", tapedeck.NotFound
			case 1:
				a.Session, want = "b", tapedeck.Conflict
			case 2:
				a.Expect, want = &ten, tapedeck.Conflict
			case 3:
				a.Check, want = sayNo, tapedeck.Internal
			case 4:
				a.Producer, want = &tapedeck.Producer{ID: "w", Seq: 7}, tapedeck.Conflict
			default:
				good[i] = append(good[i], text)
			}
			if _, err := w.Append(w.ctx, a); isKind(err, want) != nil {
				t.Errorf("writer %d: %v", i, isKind(err, want))
			}
		}
	})
	got := must(w.readTexts("a", tapedeck.Range{}))(t)
	if err := interleaved(good[:], got); err != nil {
		t.Error(err)
	}
	w.session("a").texts = got
	w.play(write("a", 1, by("w", 0, 0)), readAll())
}

// testForksComeAndGo deletes a session while other goroutines fork it, write to the
// forks and delete them. In the end no session is left.
func testForksComeAndGo(t *testing.T, w *world) {
	for round := range rounds(20, 5) {
		w.play(create("a", with(10)), create("keep", from("a", 4), with(1)))
		base := w.expected["a"].texts
		each(17, func(i int) {
			if i == 16 {
				if err := w.Delete(w.ctx, "a"); err != nil {
					t.Errorf("delete: %v", err)
				}
				return
			}
			if err := w.forkAndDelete(fmt.Sprint("f", i), int64(i%10), base); err != nil {
				t.Errorf("fork %d: %v", i, err)
			}
		})
		w.play(is("a", tapedeck.Gone), write("keep", 1), readAll(), remove("keep"), vanished("a"), lists(tapedeck.Filter{}))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// forkAndDelete forks session a, if it still exists, and deletes the fork.
func (w *world) forkAndDelete(id string, at int64, base []string) error {
	_, err := w.Create(w.ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession, Parent: "a", ForkAt: &at})
	if err != nil {
		return isKind(err, tapedeck.Conflict) // session a was deleted before
	}
	if _, err := w.Append(w.ctx, tapedeck.Append{Session: id, Events: []tapedeck.Event{event("own")}}); err != nil {
		return err
	}
	got, err := w.readTexts(id, tapedeck.Range{})
	if err != nil {
		return err
	}
	if want := append(slices.Clone(base[:at]), "own"); !slices.Equal(want, got) {
		return fmt.Errorf("it holds %q, want %q", got, want)
	}
	return w.Delete(w.ctx, id)
}
