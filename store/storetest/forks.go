package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func testForks(t *testing.T, open opener) {
	for _, p := range []string{"", "stream/"} {
		a, b, c, d := p+"a", p+"b", p+"c", p+"d"
		play(t, open, "a fork/"+a, create(a, with(5)), create(b, from(a, 3)), write(b, 2), write(a, 4), write(b, 1, expecting(5)),
			looks(b, "knows its parent", func(s tapedeck.Session) bool { return s.Parent == a && s.ForkedAt == 3 }),
			page(b, ahead(1, 3), 4, 1, 2, 3), page(b, back(5, 4), 1, 4, 3, 2, 1), page(b, ahead(2, 1), 3, 2), page(b, ahead(3, 1), 4, 3))
		play(t, open, "at the ends/"+a, create(a, with(5)), create(b, from(a, 0)), create(c, from(a, 5)), create(d, fromHead(a)),
			write(a, 1), write(b, 1), write(c, 1), write(d, 1))
		play(t, open, "of nothing/"+a, create(a), create(b, fromHead(a)), write(b, 2), write(a, 1), create(c, fromHead(b)), write(c, 1))
		play(t, open, "forks of forks/"+a, create(a, with(4)), create(b, from(a, 3), with(3)),
			create(c, from(b, 5), with(2)), create(d, from(c, 6)),
			write(a, 1), write(b, 1), write(c, 1), write(d, 9),
			page(d, ahead(2, 5), 7, 2, 3, 4, 5, 6), page(d, back(7, 5), 2, 6, 5, 4, 3, 2), page(d, back(4, 3), 1, 3, 2, 1))
		play(t, open, "below the parent's own/"+a, create(a, with(6)), create(b, from(a, 4), with(2)),
			create(c, from(b, 2)), create(d, from(c, 2), with(1)),
			write(c, 3), write(a, 1), write(b, 1))
		play(t, open, "of a closed one/"+a, create(a, with(2), closed()), create(b, fromHead(a)), write(b, 1),
			create(c, from(a, 1), closed()),
			write(c, 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)))
		play(t, open, "refused/"+a, create(a, with(3)), create(b, from(a, 4), failing(tapedeck.Invalid)),
			create(b, from(a, -1), failing(tapedeck.Invalid)),
			create(b, from("nowhere", 0), failing(tapedeck.NotFound)),
			create(b, fromHead(b), failing(tapedeck.NotFound)), is(b, tapedeck.NotFound))
		play(t, open, "inherits no producers/"+a, create(a), write(a, 1, by("w", 5, 0), sequence("m")),
			write(a, 1, by("w", 5, 1), closing()),
			create(b, fromHead(a)), write(b, 1, by("w", 0, 0), sequence("a")), write(b, 1, by("w", 0, 1)),
			write(a, 1, by("w", 5, 1), closing(), duplicate(1, 2, 1)))
	}
	play(t, open, "kinds do not mix", create("a"), create("stream/a"),
		create("b", fromHead("stream/a"), failing(tapedeck.Invalid)), create("stream/b", fromHead("a"), failing(tapedeck.Invalid)))
	contentTypeIs := func(id, want string) step {
		return looks(id, "is of type "+want, func(s tapedeck.Session) bool { return s.ContentType == want })
	}
	play(t, open, "content types", create("stream/a", typed("text/plain; charset=utf-8"), with(1)),
		create("stream/b", fromHead("stream/a")), contentTypeIs("stream/b", "text/plain; charset=utf-8"),
		create("stream/c", fromHead("stream/a"), typed("TEXT/Plain")), contentTypeIs("stream/c", "TEXT/Plain"),
		create("stream/d", fromHead("stream/a"), typed("text/plain2"), failing(tapedeck.Conflict)),
		create("stream/d", fromHead("stream/a"), typed("application/json"), failing(tapedeck.Conflict)))
	play(t, open, "inherits no status", createdWith("a", "Alpha", "ada", "coder"), runs("a", "RUN_STARTED", "i"),
		runs("a", "RUN_STARTED", "j"), runs("a", "RUN_FINISHED", "j"),
		create("b", fromHead("a")), looks("b", "is a blank sheet", func(s tapedeck.Session) bool {
			return idle(s) && s.Title == "" && s.Owner == "" && s.Agent == "" && s.TTL == 0 && s.Expires.IsZero()
		}),
		runs("b", "RUN_FINISHED", "i"), looks("a", "runs", func(s tapedeck.Session) bool { return len(s.Runs) == 1 }))
	play(t, open, "a chain", chain("", 30), chain("stream/", 30))
	t.Run("inherits the bytes", func(t *testing.T) { testInheritedBytes(t, start(t, open)) })
}

// chain forks n times, each from the one before and at a record of its own.
func chain(prefix string, n int) step {
	return step{fmt.Sprintf("fork %s %d times", prefix, n), func(w *world) error {
		if err := create(prefix+"f0", with(3)).do(w); err != nil {
			return err
		}
		for i := 1; i < n; i++ {
			parent, id := fmt.Sprint(prefix, "f", i-1), fmt.Sprint(prefix, "f", i)
			if err := create(id, from(parent, int64(i+1)), with(2)).do(w); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	}}
}

func testInheritedBytes(t *testing.T, w *world) {
	w.play(create("a", with(20)), create("b", from("a", 15), with(3)), create("c", from("b", 17)))
	a := must(w.Read(w.ctx, "a", tapedeck.Range{}))(t).Records
	b := must(w.Read(w.ctx, "b", tapedeck.Range{}))(t).Records
	c := must(w.Read(w.ctx, "c", tapedeck.Range{}))(t).Records
	if d := cmp.Diff(a[:15], b[:15]); d != "" {
		t.Errorf("(-parent +fork)\n%s", d)
	}
	if d := cmp.Diff(b[:17], c); d != "" {
		t.Errorf("(-parent +fork)\n%s", d)
	}
}

func testDelete(t *testing.T, open opener) {
	for _, p := range []string{"", "stream/"} {
		a, b, c, d := p+"a", p+"b", p+"c", p+"d"
		play(t, open, "a session/"+a, create(a, with(3)), create(b, with(1)), remove(a), is(a, tapedeck.NotFound), write(b, 1))
		play(t, open, "a closed one/"+a, create(a, with(3), closed()), remove(a), create(a), write(a, 1))
		play(t, open, "a fork/"+a, create(a, with(3)), create(b, from(a, 2), with(1)), remove(b), write(a, 1), remove(a))
		play(t, open, "a parent/"+a, create(a, with(3)), create(b, from(a, 2), with(1)), create(c, from(a, 3)), removeSoftly(a),
			write(b, 1), create(a, failing(tapedeck.Conflict)), create(d, fromHead(a), failing(tapedeck.Conflict)),
			create(d, from(a, 9), failing(tapedeck.Conflict)),
			is(d, tapedeck.NotFound), remove(b), is(a, tapedeck.Gone), write(c, 1), remove(c), vanished(a), create(a, with(1)))
		play(t, open, "a parent whose forks went first/"+a, create(a, with(3)), create(b, from(a, 2)),
			create(c, from(a, 2)), remove(c), remove(b), remove(a))
		play(t, open, "a line/"+a, create(a, with(3)), create(b, from(a, 2), with(2)), create(c, from(b, 4), with(2)),
			removeSoftly(b), removeSoftly(a), write(c, 1), create(d, from(c, 1)), removeSoftly(c), write(d, 1),
			is(a, tapedeck.Gone), remove(d), vanished(a), vanished(b), vanished(c))
		play(t, open, "the middle of a line/"+a, create(a, with(3)), create(b, from(a, 2), with(2)), create(c, from(b, 1)),
			removeSoftly(b), write(a, 1), remove(c), vanished(b), write(a, 1), remove(a))
		play(t, open, "a branched line/"+a, create(a, with(3)), create(b, from(a, 2)), create(c, from(b, 2)), create(d, from(a, 1)),
			removeSoftly(a), removeSoftly(b), remove(c), vanished(b), is(a, tapedeck.Gone), write(d, 1), remove(d), vanished(a))
		play(t, open, "a rejected fork holds nothing/"+a, create(a, with(3)), create(b, from(a, 4), failing(tapedeck.Invalid)),
			create(b, fromHead(a), badEvent(), failing(tapedeck.Invalid)), create(d), create(d, fromHead(a), existing()),
			remove(a), vanished(a))
	}
	play(t, open, "a rejected fork of another kind holds nothing", create("stream/a", typed("a/b")),
		create("b", fromHead("stream/a"), failing(tapedeck.Invalid)),
		create("stream/b", fromHead("stream/a"), typed("c/d"), failing(tapedeck.Conflict)), remove("stream/a"))
	play(t, open, "twice over", create("a", with(3)), create("b", from("a", 2)), removeSoftly("a"), remove("b"), vanished("a"),
		create("a", with(2)), create("b", from("a", 1), with(1)), removeSoftly("a"), write("b", 1), remove("b"), vanished("a"))
}

// badEvent adds a record that no session takes.
func badEvent() feature {
	return spec("with a record it cannot have", func(s *tapedeck.Spec) {
		if s.Kind == tapedeck.KindStream {
			s.Events = []tapedeck.Event{event("x")}
		} else {
			s.Events = []tapedeck.Event{{Type: "no type"}}
		}
	})
}
