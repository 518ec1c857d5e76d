package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
)

var errNo = errors.New("the check says no")

func testRefusals(t *testing.T, open opener) {
	play(t, open, "expect", create("a"), write("a", 5),
		write("a", 1, expecting(4), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, expecting(6), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, expecting(-1), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 0, closing(), expecting(4), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, expecting(5)), write("a", 0, closing(), expecting(6)))
	t.Run("expect says what to do", func(t *testing.T) { testExpectWords(t, start(t, open)) })

	play(t, open, "stream sequence", create("a"),
		write("a", 1, sequence("b")),
		write("a", 1, sequence("b"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 1, sequence("a"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 1, sequence("Z"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)), // bytes, not letters
		write("a", 1), // an append without a sequence is accepted
		write("a", 1, sequence("b\x00")),
		write("a", 1, sequence("ba")),
		write("a", 1, sequence("é")),
		write("a", 1, sequence("z"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 0, closing(), sequence("z"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 1, sequence("\xff")))
	play(t, open, "stream sequence of numbers", create("a"), write("a", 1, sequence("9")),
		write("a", 1, sequence("10"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)), // bytes, not numbers
		write("a", 1, sequence("90")))

	testClosed(t, open)
	testCheck(t, open)
	t.Run("conditions", func(t *testing.T) { testConditions(t, start(t, open)) })

	// Several checks fail for these; the first in the order counts.
	play(t, open, "the order of refusals", create("a"), write("a", 1, by("w", 5, 0), sequence("m")),
		write("a", 1, by("w", 4, 0), sequence("a"), expecting(9), staleEpoch(5)),
		write("a", 1, by("w", 6, 1), sequence("a"), expecting(9), refused(tapedeck.RefusedReset, tapedeck.Invalid)),
		write("a", 1, by("w", 5, 0), sequence("a"), expecting(9), duplicate(0, 1, 0)),
		write("a", 1, by("w", 5, 2), sequence("a"), expecting(9), gap(1)),
		write("a", 1, by("w", 5, 1), sequence("a"), expecting(9), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 1, by("w", 5, 1), sequence("n"), expecting(9), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, by("w", 5, 1), sequence("n"), expecting(1)))
}

func testClosed(t *testing.T, open opener) {
	play(t, open, "closed", create("a"), write("a", 1, closing()),
		write("a", 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, closing(), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, expecting(1), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 0, closing(), by("w", 0, 0), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 0, closing(), duplicate(-1, -1, 0)),
		write("a", 0, closing(), duplicate(-1, -1, 0)))
	play(t, open, "closed from the beginning", create("a", closed(), with(2)),
		write("a", 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 0, closing(), duplicate(-1, -1, 0)))
}

func testCheck(t *testing.T, open opener) {
	play(t, open, "check", create("a"), write("a", 1),
		write("a", 1, by("w", 0, 0), sequence("s"), checking("the check says no", sayNo), failsWith(errNo)),
		write("a", 0, closing(), checking("the check says no", sayNo), failsWith(errNo)),
		write("a", 1, by("w", 0, 0), sequence("s")),
		// Check is not called for a duplicate or an append that is refused anyway.
		write("a", 1, by("w", 0, 0), checking("the check says no", sayNo), duplicate(1, 2, 0)),
		write("a", 1, expecting(0), checking("the check says no", sayNo), refused(tapedeck.RefusedOffset, tapedeck.Conflict)))
}

// testConditions: a change asks the condition of its context first, with the session as it is.
func testConditions(t *testing.T, w *world) {
	w.play(create("a", with(2)), write("a", 1, by("w", 0, 0)), create("closed", with(2), closed()), create("free", with(1)))
	var asked []string
	no := tapedeck.OnlyIf(w.ctx, func(s *tapedeck.Session) error {
		asked = append(asked, fmt.Sprint(s.ID, s.Head))
		return errNo
	})
	ev := []tapedeck.Event{event("x")}
	seven := int64(7)
	fork := tapedeck.Spec{ID: "f", Kind: tapedeck.KindSession, Parent: "a", ForkAt: new(int64(1))}
	for _, c := range []struct {
		what, asks string
		do         func() error
	}{
		{"an append", "a3", func() error { _, err := w.Append(no, tapedeck.Append{Session: "a", Events: ev}); return err }},
		{"an append to another place", "a3", func() error {
			_, err := w.Append(no, tapedeck.Append{Session: "a", Events: ev, Expect: &seven})
			return err
		}},
		{"a duplicate", "a3", func() error {
			_, err := w.Append(no, tapedeck.Append{Session: "a", Events: ev, Producer: &tapedeck.Producer{ID: "w"}})
			return err
		}},
		{"a closing append", "a3", func() error { _, err := w.Append(no, tapedeck.Append{Session: "a", Close: true}); return err }},
		{"an append to a closed one", "closed2", func() error { _, err := w.Append(no, tapedeck.Append{Session: "closed", Events: ev}); return err }},
		{"an erasure", "a3", func() error { _, err := w.Erase(no, erasure("a", 0, 1)); return err }},
		{"an erasure that is not possible", "a3", func() error { _, err := w.Erase(no, erasure("a", 5, 9)); return err }},
		{"a deletion", "a3", func() error { return w.Delete(no, "a") }},
		{"a creation", "new0", func() error { _, err := w.Create(no, tapedeck.Spec{ID: "new", Kind: tapedeck.KindSession}); return err }},
		{"a fork", "f0", func() error { _, err := w.Create(no, fork); return err }},
		{"a fork of a foreign one", "a3", func() error {
			_, err := w.Create(tapedeck.OnlyIf(w.ctx, func(s *tapedeck.Session) error {
				if s.ID == "f" {
					return nil
				}
				return tapedeck.Condition(no)(s)
			}), fork)
			return err
		}},
	} {
		asked = nil
		if err := c.do(); !errors.Is(err, errNo) {
			t.Errorf("%s: got %v, want the error of the condition", c.what, err)
		}
		if len(asked) != 1 || asked[0] != c.asks {
			t.Errorf("%s asked about %v, want %s once", c.what, asked, c.asks)
		}
	}
	w.play(readAll())
	testUnasked(t, w, no, &asked)
	testTwoConditions(t, w)
}

// testUnasked: a condition is asked about nothing that does not exist, and a refused creation
// leaves nothing.
func testUnasked(t *testing.T, w *world, no context.Context, asked *[]string) {
	*asked = nil
	if _, err := w.Append(no, tapedeck.Append{Session: "nobody", Events: []tapedeck.Event{event("x")}}); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("without a session: got %v", err)
	}
	if _, err := w.Create(no, tapedeck.Spec{ID: "closed", Kind: tapedeck.KindSession}); err != nil || *asked != nil {
		t.Errorf("a creation of what exists asked about %v: %v", *asked, err)
	}
	for _, id := range []string{"new", "f"} {
		if _, err := w.Head(w.ctx, id); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

// testTwoConditions: both conditions of a context are asked.
func testTwoConditions(t *testing.T, w *world) {
	yes := 0
	both := tapedeck.OnlyIf(tapedeck.OnlyIf(w.ctx, func(*tapedeck.Session) error { yes++; return nil }), func(*tapedeck.Session) error { yes += 10; return nil })
	if _, err := w.Append(both, tapedeck.Append{Session: "free", Events: []tapedeck.Event{event("x")}}); err != nil || yes != 11 {
		t.Errorf("with two conditions: %v, %d", err, yes)
	}
	if err := w.Delete(both, "free"); err != nil || yes != 22 {
		t.Errorf("a deletion with two conditions: %v, %d", err, yes)
	}
}

func sayNo(*tapedeck.Session) error { return errNo }

// failsWith expects exactly this error.
func failsWith(want error) option {
	return option{"which fails as it says", func(_ *world, a *writing) { a.err = want }}
}

func testExpectWords(t *testing.T, w *world) {
	w.play(create("ses_1"), write("ses_1", 17))
	twelve := int64(12)
	_, err := w.Append(w.ctx, tapedeck.Append{Session: "ses_1", Events: []tapedeck.Event{event("x")}, Expect: &twelve})
	var e *tapedeck.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if want := "session ses_1 is at offset 17, you expected 12"; e.Message != want {
		t.Errorf("got %q, want %q", e.Message, want)
	}
	if want := "read from 12 and try again"; e.Hint != want {
		t.Errorf("got the hint %q, want %q", e.Hint, want)
	}
}
