package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

const writers = 64

func testConcurrency(t *testing.T, open opener) {
	for _, id := range []string{"a", "stream/a"} {
		t.Run("one session/"+id, func(t *testing.T) { testWriters(t, start(t, open), []string{id}) })
	}
	t.Run("many sessions", func(t *testing.T) {
		testWriters(t, start(t, open), []string{"a", "b", "c", "stream/a", "d", "e", "f", "g"})
	})
	t.Run("whole batches", func(t *testing.T) { testWholeBatches(t, start(t, open)) })
	t.Run("closing is the end", func(t *testing.T) { testClosing(t, start(t, open)) })
}

// each runs f for 0 to n-1 at once, and waits for all.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// An ack is an accepted append with its answer.
type ack struct {
	id    string
	texts []string
	got   tapedeck.Appended
}

// testWriters has many writers and readers at once. Every append must be where its
// answer says. Whenever a reader reads, it must see a beginning of the final log.
func testWriters(t *testing.T, w *world, ids []string) {
	for _, id := range ids {
		w.play(create(id))
	}
	n := rounds(60, 15)
	texts := w.texts(writers * n * 2)
	finish := w.readers(ids)
	acks := make([][]ack, writers)
	each(writers, func(i int) {
		var err error
		if acks[i], err = w.appendAll(ids, i, n, texts[i*n*2:][:n*2]); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	})
	all := map[string][]string{}
	for _, id := range ids {
		all[id] = must(w.readTexts(id, tapedeck.Range{}))(t)
		w.session(id).texts = all[id]
	}
	if err := finish(all); err != nil {
		t.Error(err)
	}
	if err := accounted(slices.Concat(acks...), all); err != nil {
		t.Error(err)
	}
	w.play(readAll())
	if w.Reopen != nil {
		w.play(reopen(), readAll())
	}
}

// appendAll makes n appends of one or two texts, to one session after the other.
func (w *world) appendAll(ids []string, i, n int, texts []string) (acks []ack, err error) {
	for j := range n {
		id, k := ids[(i+j)%len(ids)], 1+j%2
		a := tapedeck.Append{Session: id}
		a.Events, a.Chunks = contents(id, texts[:k])
		got, err := w.Append(w.ctx, a)
		if err != nil {
			return acks, err
		}
		acks = append(acks, ack{id, texts[:k], got})
		texts = texts[k:]
	}
	return acks, nil
}

// accounted returns an error unless every append is where its answer says and all has
// no other records.
func accounted(acks []ack, all map[string][]string) error {
	count := 0
	for _, list := range all {
		count += len(list)
	}
	for _, a := range acks {
		count -= len(a.texts)
		next := a.got.First + int64(len(a.texts))
		if d := cmp.Diff(tapedeck.Appended{First: a.got.First, Next: next, Head: next}, a.got); d != "" {
			return fmt.Errorf("an answer of %s: (-want +got)\n%s", a.id, d)
		}
		if a.got.First < 0 || next > int64(len(all[a.id])) {
			return fmt.Errorf("an answer of %s, which ends at %d: %+v", a.id, len(all[a.id]), a.got)
		}
		if d := cmp.Diff(a.texts, all[a.id][a.got.First:next]); d != "" {
			return fmt.Errorf("offsets %d to %d of %s: (-written +read)\n%s", a.got.First, next, a.id, d)
		}
	}
	if count != 0 {
		return fmt.Errorf("%d records were not acknowledged", count)
	}
	return nil
}

// readers starts readers of the sessions. The function that it returns lets them read
// to the end, and compares what they read with all.
func (w *world) readers(ids []string) (finish func(all map[string][]string) error) {
	const n = 4
	var wg sync.WaitGroup
	var stopped atomic.Bool
	var got [n][]string
	var errs [n]error
	for i := range n {
		wg.Go(func() { got[i], errs[i] = w.followTo(ids[i%len(ids)], &stopped) })
	}
	return func(all map[string][]string) error {
		stopped.Store(true)
		wg.Wait()
		for i := range n {
			if d := cmp.Diff(all[ids[i%len(ids)]], got[i]); d != "" && errs[i] == nil {
				errs[i] = fmt.Errorf("a reader of %s: (-there +seen)\n%s", ids[i%len(ids)], d)
			}
		}
		return errors.Join(errs[:]...)
	}
}

// followTo reads a session from the beginning, page after page, until stopped is set,
// and then once more to the end.
func (w *world) followTo(id string, stopped *atomic.Bool) ([]string, error) {
	var out []string
	for last := false; ; {
		last = stopped.Load() // before the read, which then sees everything
		r := tapedeck.Range{From: int64(len(out)), Limit: 50}
		p, err := w.Read(w.ctx, id, r)
		if err != nil {
			return out, err
		}
		for _, rec := range p.Records {
			text, err := textOf(id, rec)
			if err != nil || rec.Offset != int64(len(out)) {
				return out, errors.Join(err, fmt.Errorf("offset %d comes after %d records", rec.Offset, len(out)))
			}
			out = append(out, text)
		}
		if p.Next != int64(len(out)) || p.Head < p.Next {
			return out, fmt.Errorf("the page ends at %d of %d, after %d records", p.Next, p.Head, len(out))
		}
		if last && p.CaughtUp() {
			return out, nil
		}
	}
}

// testWholeBatches has readers look for half an append, or half a close.
func testWholeBatches(t *testing.T, w *world) {
	const size = 7
	w.play(create("a"))
	n := rounds(300, 60)
	texts := w.texts(n * size)
	var written atomic.Bool
	each(5, func(i int) {
		if i > 0 {
			if err := w.readBatches("a", size, n, &written); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
			return
		}
		defer written.Store(true)
		for j := range n {
			a := tapedeck.Append{Session: "a", Close: j == n-1}
			a.Events, _ = contents("a", texts[j*size:][:size])
			if _, err := w.Append(w.ctx, a); err != nil {
				t.Error(err)
				return
			}
		}
	})
	*w.session("a") = expected{texts: texts, closed: true}
	w.play(readAll())
}

// readBatches follows a session that is written in n batches of the same size,
// the last of which closes it.
func (w *world) readBatches(id string, size, n int, written *atomic.Bool) error {
	from := int64(0)
	for last := false; !last; {
		last = written.Load()
		p, err := w.Read(w.ctx, id, tapedeck.Range{From: from})
		s, herr := w.Head(w.ctx, id)
		all := int64(n * size)
		switch {
		case err != nil || herr != nil:
			return errors.Join(err, herr)
		case p.Head%int64(size) != 0, s.Head%int64(size) != 0, s.Head < p.Head:
			return fmt.Errorf("read to %d, and then the head was %d; batches are of %d", p.Head, s.Head, size)
		case p.Closed != (p.Head == all), s.Closed != (s.Head == all):
			return fmt.Errorf("at %d closed is %t, at %d %t; the end is at %d", p.Head, p.Closed, s.Head, s.Closed, all)
		}
		from = p.Next
	}
	return nil
}

// testClosing lets all writers append until one of them closes the session. All
// accepted appends come before the close.
func testClosing(t *testing.T, w *world) {
	w.play(create("a"))
	acked := make([][]string, writers)
	texts := w.texts(writers)
	ends := make([]int64, writers)
	var over atomic.Bool // the closing was acknowledged
	each(writers, func(i int) {
		a := tapedeck.Append{Session: "a", Close: i == writers/2}
		for !t.Failed() {
			late := over.Load()
			a.Events, _ = contents("a", texts[i:i+1])
			got, err := w.Append(w.ctx, a)
			var refusal *tapedeck.AppendError
			switch {
			case err == nil && got.Closed == a.Close && !late:
				acked[i] = append(acked[i], texts[i])
				if a.Close {
					over.Store(true)
				}
			case errors.As(err, &refusal) && refusal.Refusal == tapedeck.RefusedClosed:
				ends[i] = refusal.Head
				return
			default:
				t.Errorf("writer %d, after the closing %t: %+v, %v", i, late, got, err)
			}
		}
	})
	got := must(w.readTexts("a", tapedeck.Range{}))(t)
	if err := interleaved(acked, got); err != nil {
		t.Error(err)
	}
	for i, end := range ends {
		if end != int64(len(got)) && !t.Failed() {
			t.Errorf("the refusal of writer %d has the head %d, want %d", i, end, len(got))
		}
	}
	*w.session("a") = expected{texts: got, closed: true}
	w.play(readAll())
}
