package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// until makes the session expire after a duration.
func until(d time.Duration) feature {
	return feature{"until " + d.String() + " from now", func(w *world, m *making) { m.Expires = w.now().Add(d) }}
}

func testExpiry(t *testing.T, open opener) {
	if s := start(t, open); s.Clock == nil {
		t.Skip("the store has no clock to move")
	}
	const s = time.Second
	for _, p := range []string{"", "stream/"} {
		a, b, c, d := p+"a", p+"b", p+"c", p+"d"
		play(t, open, "a TTL/"+a, create(a, with(2), living(10*s)), create(b), advance(9*s), write(a, 1), advance(9*s),
			touch(a), advance(9*s),
			write(a, 0, closing()), advance(9*s), readAll(), advance(2*s), vanished(a), write(b, 1))
		play(t, open, "looking does not count/"+a, create(a, with(2), living(10*s)), advance(6*s), readAll(),
			lists(tapedeck.Filter{Kind: kindOf(a)}, a),
			advance(5*s), vanished(a))
		play(t, open, "refusals do not count/"+a, create(a, with(2), living(10*s)), advance(6*s),
			write(a, 1, expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
			write(a, 0, fails(tapedeck.Invalid)), create(a, existing()),
			create(b, from(a, 9), failing(tapedeck.Invalid)), advance(5*s), vanished(a))
		play(t, open, "a time/"+a, create(a, with(2), until(10*s)), advance(9*s), write(a, 1), touch(a), readAll(),
			advance(2*s), vanished(a))
		play(t, open, "whichever is first/"+a, create(a, living(10*s), until(25*s)), advance(9*s), touch(a),
			advance(9*s), touch(a), readAll(), advance(8*s), vanished(a),
			create(b, living(10*s), until(25*s)), advance(11*s), vanished(b))
		play(t, open, "never/"+a, create(a, with(1)), advance(100*365*24*time.Hour), write(a, 1))
		play(t, open, "the id is free/"+a, create(a, with(2), living(10*s)), write(a, 1, by("w", 5, 0)), advance(11*s),
			create(a, with(1)), write(a, 1, by("w", 0, 0)), advance(100*s), readAll())
		play(t, open, "while forks live/"+a, create(a, with(3), living(10*s)), create(b, from(a, 2)), advance(11*s), is(a, tapedeck.Gone),
			create(a, failing(tapedeck.Conflict)), create(c, fromHead(a), failing(tapedeck.Conflict)), write(b, 1),
			remove(b), vanished(a), create(a))
		play(t, open, "a fork/"+a, create(a, with(3)), create(b, from(a, 2), living(10*s)), removeSoftly(a),
			advance(11*s), vanished(a), vanished(b), create(a), create(b))
		play(t, open, "a line/"+a, create(a, with(3)), create(b, from(a, 2), living(5*s)),
			create(c, from(b, 1), living(20*s)), create(d, from(a, 1), until(10*s)),
			removeSoftly(a), advance(6*s), is(b, tapedeck.Gone), readAll(), advance(6*s), vanished(d), is(a, tapedeck.Gone), write(c, 1),
			advance(21*s), vanished(c), vanished(b), vanished(a))
		play(t, open, "what is deleted does not expire/"+a, create(a, with(3)), create(b, from(a, 2), living(10*s)),
			create(c, from(a, 1)), removeSoftly(a), remove(b), create(b), advance(11*s), is(a, tapedeck.Gone), write(b, 1), write(c, 1))
		play(t, open, "is gone from the list/"+a, create(a, living(10*s)), create(b, until(20*s)), create(c), create(d, fromHead(a)),
			lists(tapedeck.Filter{Kind: kindOf(a)}, d, c, b, a), advance(11*s),
			lists(tapedeck.Filter{Kind: kindOf(a)}, d, c, b), is(a, tapedeck.Gone),
			advance(10*s), vanished(b), lists(tapedeck.Filter{Kind: kindOf(a)}, d, c))
	}
	play(t, open, "many", create("z", living(1000*s)), step{"create 50 that expire one after the other", func(w *world) error {
		for i := range 50 {
			if err := create(fmt.Sprint("s", i), living(time.Duration(i+1)*s)).do(w); err != nil {
				return err
			}
		}
		for i := range 50 {
			w.play(advance(s), vanished(fmt.Sprint("s", i)))
		}
		return nil
	}})
	t.Run("after reopening", func(t *testing.T) { testExpiryReopen(t, start(t, open)) })
}

// testExpiryReopen allows a reopened store to keep a session for one more TTL, because
// a touch may be lost. It must not delete a session too early, nor bring back one that
// had expired.
func testExpiryReopen(t *testing.T, w *world) {
	if w.Reopen == nil {
		t.Skip("the store forgets")
	}
	const s = time.Second
	w.play(create("a", with(1), living(10*s)), create("b", until(25*s)),
		create("c", living(10*s)), create("d", living(10*s)), create("e", from("d", 0)),
		advance(6*s), touch("a"), write("b", 1), advance(6*s), reopen(),
		vanished("c"), is("d", tapedeck.Gone), readAll(), write("a", 1),
		advance(9*s), reopen(), readAll(), advance(5*s), vanished("b"), advance(6*s), vanished("a"),
		is("d", tapedeck.Gone), remove("e"), vanished("d"))
}
