package storetest

import (
	"testing"

	"github.com/tapedeck/tapedeck"
)

// testParts checks appends that join several appends of one writer.
func testParts(t *testing.T, open opener) {
	play(t, open, "of a producer", create("a"),
		write("a", 1, by("w", 0, 0)),
		write("a", 6, by("w", 0, 1), parts(1, 3, 2), joined(1, 7, 3, 1, 3, 2)),
		write("a", 2, by("w", 0, 3), duplicate(5, 7, 3)), // the newest append is the last part
		write("a", 3, by("w", 0, 2), duplicate(-1, -1, 3)),
		write("a", 9, by("w", 0, 3), parts(2, 7), duplicate(5, 7, 3)), // the second part is new, and is not appended either
		write("a", 2, by("w", 0, 5), parts(1, 1), gap(4)),
		write("a", 2, by("w", 0, 4), parts(2), joined(7, 9, 4, 2)),
		write("a", 2, by("w", 1, 0), parts(1, 1), joined(9, 11, 1, 1, 1)),
		write("a", 1, by("w", 1, 2)))
	play(t, open, "without a producer", create("a"), write("a", 3, parts(2, 1), joined(0, 3, 0, 2, 1)), write("a", 1))
	invalid := fails(tapedeck.Invalid)
	play(t, open, "that do not fit", create("a"),
		write("a", 2, parts(1), invalid), write("a", 2, parts(1, 2), invalid), write("a", 2, parts(2, 0), invalid),
		write("a", 2, parts(3, -1), invalid), write("a", 2, parts(1, 1), closing(), invalid),
		write("a", 2, by("w", 0, 0), parts(1), invalid), write("a", 1, by("w", 0, 0)))
}

// parts sets the parts of an append.
func parts(sizes ...int) option {
	return option{"in parts", func(_ *world, a *writing) { a.Parts = sizes }}
}

// joined expects that the parts are appended.
func joined(first, next, seq int64, sizes ...int) option {
	return option{"", func(w *world, a *writing) {
		a.want = &tapedeck.Appended{First: first, Next: next, Seq: seq, Parts: sizes}
		s := w.session(a.Session)
		s.texts = append(s.texts, a.texts...)
	}}
}
