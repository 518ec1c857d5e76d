package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// testReopen compares all entries of the catalogue before and after the store is
// opened again. Every scenario of the suite does so with its records.
func testReopen(t *testing.T, open opener) {
	w := start(t, open)
	if w.Reopen == nil {
		t.Skip("the store forgets")
	}
	labels := `{"title":"Über \u0000","owner":"ada","agent":"coder","labels":{"k":"v","":""}}`
	w.play(
		create("a", feature{"with a title", func(_ *world, m *making) {
			m.Events = []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: []byte(labels)}}
			m.texts = []string{""}
		}}, spec("in every respect", func(s *tapedeck.Spec) {
			s.TTL, s.Expires, s.Origin = 90*time.Minute, time.Date(2126, 1, 2, 3, 4, 5, 678_000_000, time.UTC), "x=1\x00"
		})),
		write("a", 3, by("w", 1, 0), sequence("s")), runs("a", "RUN_STARTED", "i"), runs("a", "RUN_STARTED", "j"),
		create("b", from("a", 2), with(2)), write("b", 1, by("w", 7, 0), closing()),
		create("c", from("b", 4)), create("d"), removeSoftly("b"), remove("d"),
		create("stream/a", typed("Text/Plain; charset=utf-8"), with(3)), create("stream/b", fromHead("stream/a"), closed()),
		write("stream/a", 1, by("w", 0, 0)), write("stream/a", 0, by("w", 0, 1), closing()),
		create("newest"), remove("newest"),
	)
	before := w.snapshot(t)
	for range 2 {
		w.play(reopen(), readAll())
		if d := cmp.Diff(before, w.snapshot(t)); d != "" {
			t.Fatalf("(-before +after reopening)\n%s", d)
		}
	}
	w.play(
		created("newest", 8), generations("a", "c", "stream/a", "stream/b", "newest"),
		runs("a", "RUN_FINISHED", "i"), looks("a", "runs j", func(s tapedeck.Session) bool {
			_, ok := s.Run("main")
			return ok && len(s.Runs) == 1 && s.Runs[0].Invocation == "j"
		}),
		is("b", tapedeck.Gone), create("b", failing(tapedeck.Conflict)), create("x", fromHead("b"), failing(tapedeck.Conflict)),
		write("c", 1), remove("c"), vanished("b"), write("a", 1, by("w", 1, 1), sequence("t")),
		write("stream/b", 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)), readAll())
}

// snapshot returns every entry of the catalogue, and checks that the entry alone
// and the entry in the list are the same.
func (w *world) snapshot(t *testing.T) []tapedeck.Session {
	t.Helper()
	var out []tapedeck.Session
	for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindStream} {
		out = append(out, must(w.list(tapedeck.Filter{Kind: kind, Limit: 2}))(t)...)
	}
	for _, s := range out {
		if d := cmp.Diff(s, must(w.Head(w.ctx, s.ID))(t)); d != "" {
			t.Errorf("%s: (-listed +head)\n%s", s.ID, d)
		}
	}
	return out
}
