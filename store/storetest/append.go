package storetest

import (
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func testAppend(t *testing.T, open opener) {
	for _, id := range []string{"a", "stream/a"} {
		play(t, open, "one/"+id, create(id), write(id, 1))
		play(t, open, "appends add up/"+id, create(id), write(id, 3), write(id, 4), write(id, 1, expecting(7)))
		play(t, open, "closing/"+id, create(id), write(id, 2), write(id, 1, closing()))
		play(t, open, "closing alone/"+id, create(id), write(id, 2), write(id, 0, closing()))
		play(t, open, "closing when empty/"+id, create(id), write(id, 0, closing()))
		play(t, open, "a large batch/"+id, create(id), write(id, 1), write(id, rounds(100_000, 10_000)), write(id, 1))
		play(t, open, "nothing/"+id, create(id), write(id, 0, fails(tapedeck.Invalid)))
		play(t, open, "unknown/"+id, write(id, 1, fails(tapedeck.NotFound)), write(id, 0, closing(), fails(tapedeck.NotFound)))
		play(t, open, "check/"+id, create(id), write(id, 3),
			write(id, 2, checking("checking the head", headIs(3))),
			write(id, 0, closing(), checking("checking the head", headIs(5))))
	}
	play(t, open, "the wrong kind of record", create("a"), create("stream/a"), write("a", 1), write("stream/a", 1),
		write("a", 0, chunks("x"), fails(tapedeck.Invalid)),
		write("a", 1, chunks("x"), fails(tapedeck.Invalid)),
		write("stream/a", 1, chunks("x"), events(event("x")), fails(tapedeck.Invalid)),
		write("stream/a", 0, events(event("x")), fails(tapedeck.Invalid)))
	play(t, open, "a bad producer", create("a"),
		write("a", 1, by("", 0, 0), fails(tapedeck.Invalid)),
		write("a", 1, by("w", -1, 0), fails(tapedeck.Invalid)),
		write("a", 1, by("w", 0, -1), fails(tapedeck.Invalid)))
}

// headIs sets a Check that compares the session that it gets.
func headIs(head int64) func(*tapedeck.Session) error {
	return func(s *tapedeck.Session) error {
		if s.Head != head {
			return fmt.Errorf("check saw head %d, want %d", s.Head, head)
		}
		s.Head, s.Closed = 99, true // it is a copy
		return nil
	}
}

// chunks sets the chunks, also for a session.
func chunks(texts ...string) option {
	return option{"as bytes", func(_ *world, a *writing) {
		for _, text := range texts {
			a.Chunks = append(a.Chunks, []byte(text))
		}
	}}
}

// events sets the events, also for a stream.
func events(list ...tapedeck.Event) option {
	return option{"as events", func(_ *world, a *writing) { a.Events = append(a.Events, list...) }}
}
