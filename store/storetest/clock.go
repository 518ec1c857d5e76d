package storetest

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// testClock sets the clock back and forward while sessions are written. Offsets order events,
// and times do not: nothing is lost, refused or in another order. A time to live
// does not end early because the clock was set back; it may end late. What has expired does not
// come back.
func testClock(t *testing.T, open opener) {
	if s := start(t, open); s.Clock == nil {
		t.Skip("the store has no clock to move")
	}
	const s, year = time.Second, 365 * 24 * time.Hour
	for _, p := range []string{"", "stream/"} {
		a, b := p+"a", p+"b"
		play(t, open, "events/"+a, create(a, with(2)), advance(-year), write(a, 2), readAll(), advance(2*year), write(a, 1),
			advance(-s), write(a, 1, expecting(5)), readAll(), lists(tapedeck.Filter{Kind: kindOf(a)}, a))
		play(t, open, "producers/"+a, create(a), write(a, 1, by("w", 0, 0)), advance(-year), write(a, 1, by("w", 0, 1)),
			advance(2*year), write(a, 1, by("w", 0, 2)), readAll())
		play(t, open, "a TTL set back/"+a, create(a, with(1), living(10*s)), advance(-year), write(a, 1), advance(9*s), write(a, 1),
			advance(9*s), readAll())
		play(t, open, "a TTL set forward/"+a, create(a, living(10*s)), create(b, living(3*year)), advance(year), vanished(a), write(b, 1),
			advance(-year), vanished(a), create(a, with(1)), readAll())
		play(t, open, "a time set back/"+a, create(a, with(1), until(10*s)), advance(-5*s), advance(14*s), write(a, 1), advance(2*s), vanished(a),
			advance(-10*s), vanished(a))
		play(t, open, "a fork from the future/"+a, create(a, with(3)), advance(-year), create(b, from(a, 2)), write(b, 1), advance(year), readAll())
	}
}
