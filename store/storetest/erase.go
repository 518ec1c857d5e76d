package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A sharer is a session that shares records with another one, below an offset.
type sharer struct {
	id    string
	below int64
}

// erase erases a range, also for the forks that share it, and appends a receipt.
func erase(id string, from, to int64, forks ...sharer) step {
	return step{fmt.Sprintf("erase %d to %d of %s", from, to, id), func(w *world) error {
		s := w.session(id)
		head := int64(len(s.texts))
		got, err := w.Erase(w.ctx, erasure(id, from, to))
		if err != nil {
			return fmt.Errorf("it failed: %w", err)
		}
		want := tapedeck.Appended{First: head, Next: head + 1, Head: head + 1, Closed: s.closed}
		if d := cmp.Diff(want, got.Appended); d != "" {
			return fmt.Errorf("(-want +got)\n%s", d)
		}
		s.texts = append(s.texts, "")
		var ids []string
		for _, f := range append(forks, sharer{id, to}) {
			clear(w.expected[f.id].texts[from:min(to, f.below)])
			if ids = append(ids, f.id); f.id == id {
				ids = ids[:len(ids)-1]
			}
		}
		slices.Sort(got.Forks)
		if !slices.Equal(ids, got.Forks) {
			return fmt.Errorf("the forks that have lost payloads are %v, want %v", got.Forks, ids)
		}
		return nil
	}}
}

// eraseFails expects that an erasure fails.
func eraseFails(id string, from, to int64, k tapedeck.Kind) step {
	return step{fmt.Sprintf("erase %d to %d of %s, which fails: %s", from, to, id, k), func(w *world) error {
		_, err := w.Erase(w.ctx, erasure(id, from, to))
		return isKind(err, k)
	}}
}

func erasure(id string, from, to int64) tapedeck.Erasure {
	ranges := []tapedeck.OffsetRange{{From: from, To: to}}
	return tapedeck.Erasure{
		Session: id, Ranges: ranges,
		Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
	}
}

func testErase(t *testing.T, open opener) {
	play(t, open, "some", create("a", with(6)), create("b", with(2)), erase("a", 2, 4), readAll(), write("a", 2), write("b", 1),
		erase("a", 0, 1), erase("a", 8, 9))
	play(t, open, "all, and again", create("a", with(5)), erase("a", 0, 5), erase("a", 0, 6), write("a", 1, expecting(7)))
	play(t, open, "many", create("a", with(1300)), erase("a", 1, 1299), write("a", 1))
	play(t, open, "of a closed one", create("a", with(3), closed()), erase("a", 1, 2),
		write("a", 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)))
	play(t, open, "with forks", create("a", with(5)), create("b", from("a", 3), with(2)), create("c", from("b", 4), with(1)),
		create("d", from("a", 1)), write("a", 3),
		erase("a", 2, 7, sharer{"b", 3}, sharer{"c", 3}), readAll(), erase("b", 3, 5, sharer{"c", 4}), readAll(),
		erase("a", 0, 1, sharer{"b", 3}, sharer{"c", 3}, sharer{"d", 1}), write("b", 1), write("c", 1), write("d", 1))
	play(t, open, "with a deleted fork", create("a", with(3)), create("b", from("a", 3), with(1)), create("c", from("b", 4)),
		removeSoftly("b"), erase("a", 0, 2, sharer{"c", 3}), readAll(), remove("c"), vanished("b"))
	play(t, open, "refused", create("a", with(3)), create("b", from("a", 2), with(2)), create("stream/a", with(2)),
		eraseFails("a", 0, 0, tapedeck.Invalid), eraseFails("a", -1, 2, tapedeck.Invalid), eraseFails("a", 2, 4, tapedeck.Invalid),
		eraseFails("b", 1, 3, tapedeck.Invalid), eraseFails("b", 0, 2, tapedeck.Invalid), eraseFails("stream/a", 0, 1, tapedeck.NotFound),
		eraseFails("nobody", 0, 1, tapedeck.NotFound), remove("b"), eraseFails("b", 0, 1, tapedeck.NotFound))
	play(t, open, "of a deleted one", create("a", with(3)), create("b", from("a", 2)), removeSoftly("a"),
		eraseFails("a", 0, 1, tapedeck.Gone))
	t.Run("the check", func(t *testing.T) { testEraseCheck(t, start(t, open)) })
	t.Run("the entry", func(t *testing.T) { testErasedEntry(t, start(t, open)) })
	if s := start(t, open); s.FailCommits != nil {
		play(t, open, "a failing commit", create("a", with(4)), create("b", from("a", 3)), failCommits(true),
			eraseFails("a", 0, 3, tapedeck.Unavailable), readAll(), failCommits(false), readAll(), write("a", 1),
			erase("a", 0, 3, sharer{"b", 3}))
	}
}

// testEraseCheck: Check gets the session as it is, and may refuse.
func testEraseCheck(t *testing.T, w *world) {
	w.play(create("a", with(2)))
	e := erasure("a", 0, 1)
	e.Check = func(s *tapedeck.Session) error {
		if s.Head != 2 {
			t.Errorf("the check sees the head at %d", s.Head)
		}
		return errNo
	}
	if _, err := w.Erase(w.ctx, e); err != errNo {
		t.Errorf("got %v, want the error of the check", err)
	}
	w.play(readAll())
}

// testErasedEntry: the events that are appended with an erasure are folded into the
// entry in their order, and no record has an erased payload.
func testErasedEntry(t *testing.T, w *world) {
	w.play(createdWith("a", "Secret", "ada", "coder"), runs("a", "RUN_STARTED", "i"), runs("a", "RUN_FINISHED", "i"))
	e := erasure("a", 0, 3)
	title := ""
	e.Events = append([]tapedeck.Event{payload.NewEvent(payload.SessionRenamed{Title: &title})}, e.Events...)
	if _, err := w.Erase(w.ctx, e); err != nil {
		t.Fatal(err)
	}
	s := must(w.Head(w.ctx, "a"))(t)
	if s.Title != "" || s.Owner != "ada" || s.Agent != "coder" || s.Status != tapedeck.StatusComplete || s.Head != 5 {
		t.Errorf("the entry: %+v", s)
	}
	for _, r := range must(w.Read(w.ctx, "a", tapedeck.Range{}))(t).Records {
		if bytes.Contains(r.Data, []byte("Secret")) {
			t.Errorf("it is still there: %s", r.Data)
		}
	}
}
