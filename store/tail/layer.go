package tail

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// Layer returns a store that reads a page from c if c holds all of it, otherwise from
// store. It registers c as an observer of store, so a cache is for one store and
// Layer is called once. Call it before other observers are registered: then a
// reader that one of them wakes finds the new events in the cache.
func (c *Cache) Layer(store tapedeck.Store) tapedeck.Store {
	store.Observe(tapedeck.Observer{Committed: c.committed})
	return &layer{store, c}
}

type layer struct {
	tapedeck.Store
	cache *Cache
}

// Read implements [tapedeck.Log]. The store shows a commit a moment before it
// notifies c. So Read uses c only if c is as new as the head of the store: otherwise a
// client that knows of an event from the store would not find it.
func (l *layer) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	s, err := l.Head(ctx, session)
	if err != nil {
		return tapedeck.Page{}, err
	}
	if w := l.cache.window(session); w != nil && w.session.Gen == s.Gen && w.session.Head >= s.Head {
		if p, ok := w.read(r.WithDefaults()); ok {
			l.cache.hits.Add(1)
			return p, nil
		}
	}
	l.cache.misses.Add(1)
	return l.Store.Read(ctx, session, r)
}

// Close implements [tapedeck.Store]. It clears the cache, so that later calls fail as
// those of the store do.
func (l *layer) Close() error {
	err := l.Store.Close()
	l.cache.clear()
	return err
}

// read returns a page if the window has all of it. It reports false if not, and for
// an invalid range, for which the store has the error. Pages share the memory of
// their records; only a page in reverse has a slice of its own.
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

// forwards returns the page that begins at index at.
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

// backwards returns the page of the records below index at, newest first. It reports
// false if the page would need records that the window does not have.
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
