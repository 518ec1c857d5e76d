package tail

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// Over returns a store that answers from c what c holds, and asks store for the
// rest. It registers c as an observer of store, so a cache is for one store and
// Over is called once. Call it before other observers are registered: then a
// follower that one of them wakes finds the new events in the cache.
func (c *Cache) Over(store tapedeck.Store) tapedeck.Store {
	store.Observe(tapedeck.Observer{Committed: c.committed})
	return &layer{store, c}
}

type layer struct {
	tapedeck.Store
	cache *Cache
}

// Read implements [tapedeck.Log]. The store shows a commit a moment before c hears
// of it. What c holds is taken only if it is no older than that: else a reader who
// has been told of an event by the store would be told that it is not there.
func (l *layer) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	s, err := l.Head(ctx, session)
	if err != nil {
		return tapedeck.Page{}, err
	}
	if w := l.cache.window(session); w != nil && w.session.Gen == s.Gen && w.session.Head >= s.Head {
		if p, ok := w.read(r.WithDefaults()); ok {
			return p, nil
		}
	}
	return l.Store.Read(ctx, session, r)
}

// Close implements [tapedeck.Store]. What is held is let go of, so that later
// calls fail as those of the store do.
func (l *layer) Close() error {
	err := l.Store.Close()
	l.cache.clear()
	return err
}

// read returns a page if all of it is held. It reports false for what is not,
// and for what is wrong: the store finds the words for that. A page shares the
// memory of its records with all others; only one in reverse has a list of its
// own.
func (w *window) read(r tapedeck.Range) (tapedeck.Page, bool) {
	if r.Reverse && r.From == -1 {
		r.From = w.session.Head
	}
	at := r.From - w.first()
	if at < 0 || r.From > w.session.Head {
		return tapedeck.Page{}, false
	}
	if r.Reverse {
		return w.backwards(int(at), r)
	}
	return w.forwards(int(at), r), true
}

// forwards returns the page of the records from index at on.
func (w *window) forwards(at int, r tapedeck.Range) tapedeck.Page {
	rest := w.records[at:]
	n, size := min(len(rest), r.Limit), 0
	for i := range n {
		if size += len(rest[i].Data); size > r.MaxBytes && i > 0 {
			n = i
			break
		}
	}
	p := w.page(r.From + int64(n))
	if n > 0 {
		p.Records = rest[:n:n]
	}
	return p
}

// backwards returns the page of the records below index at, newest first. It
// reports false if the page would go on with records that are not held.
func (w *window) backwards(at int, r tapedeck.Range) (tapedeck.Page, bool) {
	begin, size := at, 0
	for begin > 0 && at-begin < r.Limit {
		if size += len(w.records[begin-1].Data); size > r.MaxBytes && begin < at {
			break
		}
		begin--
	}
	if begin == 0 && w.first() > 0 && at < r.Limit {
		return tapedeck.Page{}, false
	}
	p := w.page(w.first() + int64(begin))
	if begin < at {
		p.Records = slices.Clone(w.records[begin:at])
		slices.Reverse(p.Records)
	}
	return p, true
}

func (w *window) page(next int64) tapedeck.Page {
	return tapedeck.Page{Next: next, Head: w.session.Head, Closed: w.session.Closed, Gen: w.session.Gen}
}
