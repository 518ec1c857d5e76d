package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// page reads one page and expects these offsets and this next.
func page(id string, r tapedeck.Range, next int64, offsets ...int64) step {
	return step{fmt.Sprintf("read %s from %+v", id, r), func(w *world) error {
		p, err := w.Read(w.ctx, id, r)
		if err != nil {
			return err
		}
		var got []int64
		for _, rec := range p.Records {
			got = append(got, rec.Offset)
			text, err := textOf(id, rec)
			if err != nil {
				return err
			}
			if all := w.expected[id].texts; rec.Offset < 0 || rec.Offset >= int64(len(all)) || text != all[rec.Offset] {
				return fmt.Errorf("offset %d holds %q, want one of %q", rec.Offset, text, all)
			}
		}
		if d := cmp.Diff(offsets, got); d != "" {
			return fmt.Errorf("offsets: (-want +got)\n%s", d)
		}
		head := int64(len(w.expected[id].texts))
		if p.Next != next || p.Head != head || p.Closed != w.expected[id].closed {
			return fmt.Errorf("next %d, head %d, closed %t; want %d, %d, %t", p.Next, p.Head, p.Closed, next, head, w.expected[id].closed)
		}
		return nil
	}}
}

// noPage expects that a read fails.
func noPage(id string, r tapedeck.Range, k tapedeck.Kind) step {
	return step{fmt.Sprintf("read %s from %+v, which fails: %s", id, r, k), func(w *world) error {
		_, err := w.Read(w.ctx, id, r)
		return isKind(err, k)
	}}
}

// Shorter names for the ranges below.
func ahead(from int64, limit int) tapedeck.Range { return tapedeck.Range{From: from, Limit: limit} }

func back(from int64, limit int) tapedeck.Range {
	return tapedeck.Range{From: from, Limit: limit, Reverse: true}
}

func testRead(t *testing.T, open opener) {
	for _, id := range []string{"a", "stream/a"} {
		play(t, open, "empty/"+id, create(id),
			page(id, ahead(0, 0), 0), page(id, back(-1, 0), 0), page(id, back(0, 0), 0),
			noPage(id, ahead(1, 0), tapedeck.Invalid), noPage(id, back(1, 0), tapedeck.Invalid))
		play(t, open, "forwards/"+id, create(id), write(id, 5),
			page(id, ahead(0, 0), 5, 0, 1, 2, 3, 4), page(id, ahead(0, 2), 2, 0, 1), page(id, ahead(2, 2), 4, 2, 3),
			page(id, ahead(4, 2), 5, 4), page(id, ahead(0, 5), 5, 0, 1, 2, 3, 4), page(id, ahead(5, 2), 5),
			page(id, ahead(3, 1<<40), 5, 3, 4), page(id, ahead(3, -1), 5, 3, 4))
		play(t, open, "backwards/"+id, create(id), write(id, 5),
			page(id, back(-1, 0), 0, 4, 3, 2, 1, 0), page(id, back(-1, 2), 3, 4, 3), page(id, back(3, 2), 1, 2, 1),
			page(id, back(1, 2), 0, 0), page(id, back(0, 2), 0), page(id, back(5, 5), 0, 4, 3, 2, 1, 0), page(id, back(5, 1), 4, 4))
		play(t, open, "out of range/"+id, create(id), write(id, 5),
			noPage(id, ahead(6, 0), tapedeck.Invalid), noPage(id, ahead(-1, 0), tapedeck.Invalid),
			noPage(id, ahead(1<<62, 0), tapedeck.Invalid), noPage(id, ahead(-1<<63, 0), tapedeck.Invalid),
			noPage(id, back(6, 0), tapedeck.Invalid), noPage(id, back(-2, 0), tapedeck.Invalid))
		play(t, open, "closed/"+id, create(id), write(id, 3, closing()),
			page(id, ahead(0, 2), 2, 0, 1), page(id, ahead(3, 0), 3), page(id, back(-1, 1), 2, 2))
		play(t, open, "unknown/"+id, noPage(id, ahead(0, 0), tapedeck.NotFound), noPage(id, back(-1, 0), tapedeck.NotFound))
		play(t, open, "the default limit/"+id, create(id), write(id, tapedeck.DefaultLimit+1),
			nextIs(id, ahead(0, 0), tapedeck.DefaultLimit), nextIs(id, back(-1, 0), 1))
	}
	for _, id := range []string{"a", "../a", "a\x00b", "'; DROP TABLE sessions; --", "", "stream/", "%"} {
		play(t, open, "no such session/"+fmt.Sprintf("%q", id), create("b"), is(id, tapedeck.NotFound))
	}
	testBytesOfPages(t, open)
}

// nextIs reads a page and checks only its next.
func nextIs(id string, r tapedeck.Range, next int64) step {
	return step{fmt.Sprintf("read %s from %+v", id, r), func(w *world) error {
		p, err := w.Read(w.ctx, id, r)
		if err == nil && p.Next != next {
			err = fmt.Errorf("next is %d, want %d", p.Next, next)
		}
		return err
	}}
}

// testBytesOfPages checks MaxBytes: a page has as many records as fit, at least one.
func testBytesOfPages(t *testing.T, open opener) {
	bytes := func(from int64, n int, reverse bool) tapedeck.Range {
		return tapedeck.Range{From: from, MaxBytes: n, Reverse: reverse}
	}
	const id = "stream/a"
	sizes := step{"append records of 10, 20, 30 and 5 bytes", func(w *world) error {
		var texts []string
		for _, n := range []int{10, 20, 30, 5} {
			texts = append(texts, fmt.Sprintf("%0*d", n, n))
		}
		return write(id, 0, chunks(texts...), accepting(texts)).do(w)
	}}
	play(t, open, "bytes", create(id), sizes,
		page(id, bytes(0, 1, false), 1, 0), page(id, bytes(0, 10, false), 1, 0), page(id, bytes(0, 29, false), 1, 0),
		page(id, bytes(0, 30, false), 2, 0, 1), page(id, bytes(1, 49, false), 2, 1), page(id, bytes(1, 50, false), 3, 1, 2),
		page(id, bytes(2, 1, false), 3, 2), page(id, bytes(0, 65, false), 4, 0, 1, 2, 3), page(id, bytes(4, 1, false), 4),
		page(id, bytes(-1, 1, true), 3, 3), page(id, bytes(-1, 34, true), 3, 3), page(id, bytes(-1, 35, true), 2, 3, 2),
		page(id, bytes(2, 25, true), 1, 1), page(id, bytes(2, 30, true), 0, 1, 0))
	play(t, open, "the default of bytes", create(id), step{"append 3 records of 0.4 MiB", func(w *world) error {
		text := string(make([]byte, 1<<20*2/5))
		return write(id, 0, chunks(text, text, text), accepting([]string{text, text, text})).do(w)
	}}, nextIs(id, ahead(0, 0), 2), nextIs(id, back(-1, 0), 1))
	t.Run("bytes of an envelope count whole", func(t *testing.T) {
		w := start(t, open)
		w.play(create("a"), write("a", 12))
		p := must(w.Read(w.ctx, "a", ahead(8, 0)))(t)
		n := 0
		for _, r := range p.Records[:3] { // the offsets 8, 9 and 10
			n += len(r.Data)
		}
		w.play(page("a", bytes(8, n, false), 11, 8, 9, 10), page("a", bytes(8, n-1, false), 10, 8, 9),
			page("a", bytes(11, n, true), 8, 10, 9, 8), page("a", bytes(11, n-1, true), 9, 10, 9))
	})
}
