package guard

import (
	"context"
	"iter"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/internal/past"
)

// frozen shows the beginning of a session as if it had been closed there.
type frozen struct {
	store Store

	mu     sync.Mutex
	drops  int
	byPart lru.Map[part, tapedeck.Session]
}

// A part is a beginning of a session.
type part struct{ gen, before int64 }

// maxParts is how many entries are remembered.
const maxParts = 1000

func newFrozen(store Store) *frozen { return &frozen{store: store} }

// drop forgets everything: an erasure may have removed a title.
func (f *frozen) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drops++
	f.byPart = lru.Map[part, tapedeck.Session]{}
}

// entry returns the entry of a session as it was at an offset.
func (f *frozen) entry(ctx context.Context, now *tapedeck.Session, before int64) (tapedeck.Session, error) {
	key := part{now.Gen, before}
	f.mu.Lock()
	s, ok := f.byPart.Get(key)
	drops := f.drops
	f.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := past.Entry(ctx, f.store, now, before)
	if err != nil {
		return tapedeck.Session{}, err
	}
	s.Closed = true
	if s.Status == tapedeck.StatusWaiting {
		s.Status = tapedeck.StatusRunning // nobody can answer in a part
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drops == drops && now.Head >= before {
		f.byPart.Put(key, s)
		f.byPart.Trim(maxParts, nil)
	}
	return s, nil
}

// read reads a page of the part before an offset.
func (f *frozen) read(ctx context.Context, session string, before int64, r tapedeck.Range) (tapedeck.Page, error) {
	if r.Reverse && (r.From < 0 || r.From > before) {
		r.From = before
		if s, err := f.store.Head(ctx, session); err != nil {
			return tapedeck.Page{}, err
		} else if s.Head < before {
			r.From = s.Head
		}
	}
	if r.From > before {
		return tapedeck.Page{}, beyond(session, before)
	}
	page, err := f.store.Read(ctx, session, r)
	if err != nil {
		return tapedeck.Page{}, err
	}
	page.Head, page.Closed = min(page.Head, before), true
	if !r.Reverse && page.Next > before {
		for n := len(page.Records); n > 0 && page.Records[n-1].Offset >= before; n-- {
			page.Records = page.Records[:n-1]
		}
		page.Next = before
	}
	return page, nil
}

// beyond returns the error of an offset above the head.
func beyond(session string, head int64) error {
	return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d", session, head).WithHint("ask for an offset up to that")
}

// follow returns a Follow that ends before an offset, as at the end of a closed session.
func (f *frozen) follow(before int64) func(context.Context, string, tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
	return func(ctx context.Context, session string, o tapedeck.FollowOptions) iter.Seq2[tapedeck.Page, error] {
		return func(yield func(tapedeck.Page, error) bool) {
			for from := o.From; ; {
				page, err := f.read(ctx, session, before, tapedeck.Range{From: from, Limit: o.Limit, MaxBytes: o.MaxBytes})
				if !yield(page, err) || err != nil || page.CaughtUp() {
					return
				}
				from = page.Next
			}
		}
	}
}

// asOf returns the offset as of which an identity sees a view; below 0 is the head.
func asOf(i *access.Identity, session string, at int64) (int64, error) {
	switch before := i.Limits.Before; {
	case before == 0 || at >= 0 && at <= before:
		return at, nil
	case at > before:
		return 0, beyond(session, before)
	default:
		return before, nil
	}
}
