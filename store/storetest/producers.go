package storetest

import (
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func testProducers(t *testing.T, open opener) {
	play(t, open, "in order", create("a"), write("a", 2, by("w", 0, 0)), write("a", 3, by("w", 0, 1)), write("a", 1, by("w", 0, 2)))
	play(t, open, "duplicates", create("a"),
		write("a", 2, by("w", 0, 0)), write("a", 3, by("w", 0, 1)), write("a", 4),
		write("a", 3, by("w", 0, 1), duplicate(2, 5, 1)),
		write("a", 2, by("w", 0, 0), duplicate(-1, -1, 1)),
		write("a", 9, by("w", 0, 1), duplicate(2, 5, 1)), // the content does not matter
		write("a", 1, by("w", 0, 2)),
		write("a", 3, by("w", 0, 1), duplicate(-1, -1, 2)))
	play(t, open, "an unknown producer begins with 0", create("a"),
		write("a", 1, by("w", 0, 1), gap(0)), write("a", 1, by("w", 7, 3), gap(0)), write("a", 1, by("w", 7, 0)))
	play(t, open, "a gap", create("a"), write("a", 1, by("w", 0, 0)),
		write("a", 1, by("w", 0, 2), gap(1)), write("a", 1, by("w", 0, 9), gap(1)),
		write("a", 1, by("w", 0, 1)), write("a", 1, by("w", 0, 2)))
	play(t, open, "a new epoch", create("a"),
		write("a", 1, by("w", 1, 0)), write("a", 1, by("w", 1, 1)),
		write("a", 1, by("w", 2, 1), refused(tapedeck.RefusedReset, tapedeck.Invalid)),
		write("a", 1, by("w", 2, 0)),
		write("a", 1, by("w", 1, 2), staleEpoch(2)),
		write("a", 1, by("w", 1, 1), staleEpoch(2)),
		write("a", 1, by("w", 0, 0), staleEpoch(2)),
		write("a", 1, by("w", 2, 1)))
	play(t, open, "producers do not know each other", create("a"), create("b"),
		write("a", 1, by("v", 3, 0)), write("a", 1, by("w", 0, 0)), write("a", 1, by("w", 0, 1)),
		write("a", 1, by("v", 3, 1)), write("a", 1, by("V", 0, 0)),
		write("b", 1, by("w", 0, 0)), write("b", 1, by("v", 0, 0)))
	play(t, open, "large numbers", create("a"),
		write("a", 1, by("w", 1<<53-1, 0)), write("a", 1, by("w", 1<<53-1, 1<<53-1), gap(1)),
		write("a", 1, by("w", 1<<53-2, 0), staleEpoch(1<<53-1)))
	play(t, open, "a refused append leaves no trace", create("a"), write("a", 1, by("w", 0, 0)),
		write("a", 1, by("w", 0, 1), expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, by("w", 1, 0), expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, by("w", 0, 1)),
		write("a", 1, by("x", 0, 0), sequence("s"), expecting(0), refused(tapedeck.RefusedOffset, tapedeck.Conflict)),
		write("a", 1, by("x", 0, 1), gap(0)),
		write("a", 1, sequence("s")))
	testClosers(t, open)
	t.Run("pipelined duplicates", func(t *testing.T) { testPipeline(t, start(t, open)) })
	t.Run("after reopening", func(t *testing.T) { testProducersReopen(t, start(t, open)) })
}

// testClosers checks which appends may be repeated after a session was closed.
func testClosers(t *testing.T, open opener) {
	play(t, open, "closing with records", create("a"),
		write("a", 1, by("v", 4, 0)), write("a", 1, by("w", 2, 0)), write("a", 2, by("w", 2, 1), closing()),
		write("a", 2, by("w", 2, 1), closing(), duplicate(2, 4, 1)),
		write("a", 2, by("w", 2, 1), duplicate(2, 4, 1)),
		write("a", 0, closing(), duplicate(-1, -1, 0)),
		write("a", 1, by("w", 2, 0), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, by("w", 2, 2), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 0, by("w", 2, 2), closing(), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, by("w", 3, 0), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, by("w", 3, 1), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, by("x", 2, 1), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		write("a", 1, by("w", 1, 1), staleEpoch(2)),
		write("a", 1, by("v", 3, 0), staleEpoch(4)),
		write("a", 1, by("v", 4, 0), refused(tapedeck.RefusedClosed, tapedeck.Conflict)))
	play(t, open, "closing alone", create("a"), write("a", 3),
		write("a", 0, by("w", 0, 0), closing()),
		write("a", 0, by("w", 0, 0), closing(), duplicate(3, 3, 0)),
		write("a", 0, by("w", 0, 1), closing(), refused(tapedeck.RefusedClosed, tapedeck.Conflict)))
	play(t, open, "closing alone counts", create("a"), write("a", 1, by("w", 0, 0)),
		write("a", 0, by("w", 0, 2), closing(), gap(1)),
		write("a", 0, by("w", 0, 0), closing(), duplicate(0, 1, 0)), // a duplicate closes nothing
		write("a", 0, by("w", 0, 1), closing()),
		looks("a", "has the producer that closed it", func(s tapedeck.Session) bool {
			return s.ClosedBy != nil && *s.ClosedBy == tapedeck.Producer{ID: "w", Epoch: 0, Seq: 1}
		}))
}

// testPipeline tests a client that sends several batches at once and repeats those
// that came too early or got no answer, as clients of Durable Streams do.
func testPipeline(t *testing.T, w *world) {
	const copies = 4
	batches := rounds(100, 30)
	w.play(create("a"))
	texts := w.texts(batches)
	w.session("a").texts = texts
	var wg sync.WaitGroup
	for range copies {
		wg.Go(func() {
			for seq := 0; seq < batches; {
				a := tapedeck.Append{Session: "a", Producer: &tapedeck.Producer{ID: "w", Seq: int64(seq)}}
				a.Events, _ = contents("a", texts[seq:seq+1])
				got, err := w.Append(w.ctx, a)
				switch {
				case err != nil:
					t.Errorf("batch %d: %v", seq, err)
					return
				case got.First != int64(seq) && got.First != -1, got.Seq < int64(seq):
					t.Errorf("batch %d: %+v", seq, got)
				}
				seq++
			}
		})
	}
	wg.Wait()
	w.play(readAll())
}

// testProducersReopen continues after another process.
func testProducersReopen(t *testing.T, w *world) {
	if w.Reopen == nil {
		t.Skip("the store forgets")
	}
	w.play(create("a"), write("a", 2, by("v", 1, 0)), write("a", 2, by("w", 3, 0), sequence("m")), write("a", 1, by("w", 3, 1)),
		create("b"), write("b", 2, by("w", 0, 0), closing()),
		reopen(),
		write("a", 1, by("w", 3, 1), duplicate(4, 5, 1)),
		write("a", 2, by("w", 3, 0), duplicate(-1, -1, 1)),
		write("a", 1, by("w", 2, 9), staleEpoch(3)),
		write("a", 1, by("w", 3, 3), gap(2)),
		write("a", 2, by("v", 1, 0), duplicate(0, 2, 0)),
		write("a", 1, sequence("l"), refused(tapedeck.RefusedSeq, tapedeck.Conflict)),
		write("a", 1, by("w", 3, 2), sequence("n")),
		write("b", 2, by("w", 0, 0), closing(), duplicate(0, 2, 0)),
		write("b", 0, closing(), duplicate(-1, -1, 0)),
		write("b", 1, by("w", 0, 1), refused(tapedeck.RefusedClosed, tapedeck.Conflict)),
		readAll())
}
