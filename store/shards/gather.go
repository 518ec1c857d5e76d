package shards

import (
	"context"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// each calls f for every shard, all at once, and returns their errors.
func each(s *Store, f func(i int) error) []error {
	errs := make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i := range s.shards[1:] {
		wg.Go(func() { errs[i+1] = f(i + 1) })
	}
	errs[0] = f(0)
	wg.Wait()
	return errs
}

// every is each for a call that needs all shards. If one does not answer, the error says
// which one, and what that means. With the meaning "" the error of the shard says all.
func (s *Store) every(ctx context.Context, meaning string, f func(i int) error) error {
	errs := each(s, f)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range errs { // what is wrong with the request comes first
		if err != nil && tapedeck.KindOf(err) != tapedeck.Unavailable {
			return err
		}
	}
	for i, err := range errs {
		if err != nil && meaning == "" {
			return err
		}
		if err != nil {
			return s.missing(i, meaning, err)
		}
	}
	return nil
}

// missing returns the error for a call that shard i did not answer. A list that silently
// left sessions out would be taken for all there are.
func (s *Store) missing(i int, meaning string, err error) error {
	if s.closed.Load() {
		return err
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "database %d of %d does not answer, so %s", i+1, len(s.shards), meaning).
		WithHint("try again; the sessions in the other databases can be read and written by their ids meanwhile").Because(err)
}

// List implements [tapedeck.Catalogue]. Every shard lists from the same place on, because a
// place orders the sessions of all shards; the page is the beginning of what they have.
func (s *Store) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	if f.Parent != "" { // forks are where their parent is
		at, err := s.find(ctx, f.Parent)
		if err != nil {
			return tapedeck.SessionPage{}, err
		}
		return s.shards[at].Store.List(ctx, f)
	}
	parts := make([]listed, len(s.shards))
	err := s.every(ctx, "the list would not have all sessions", func(i int) (err error) {
		parts[i].page, parts[i].places, err = s.shards[i].Store.ListPlaces(ctx, f)
		return err
	})
	if err != nil {
		return tapedeck.SessionPage{}, err
	}
	return join(&f, parts), nil
}

// listed is the page of one shard.
type listed struct {
	page   tapedeck.SessionPage
	places []store.Place
}

// limits of a page, see [tapedeck.Filter].
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// join takes the sessions that come first from the pages of the shards.
func join(f *tapedeck.Filter, parts []listed) tapedeck.SessionPage {
	limit := defaultLimit
	if f.Limit > 0 {
		limit = min(f.Limit, maxLimit)
	}
	var out tapedeck.SessionPage
	more := slices.ContainsFunc(parts, func(p listed) bool { return p.page.Next != "" })
	var last store.Place
	for {
		first := -1
		for i := range parts {
			if len(parts[i].places) > 0 && (first < 0 || comesBefore(f, parts[i].places[0], parts[first].places[0])) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		if len(out.Sessions) == limit {
			more = true
			break
		}
		p := &parts[first]
		out.Sessions, last = append(out.Sessions, p.page.Sessions[0]), p.places[0]
		p.page.Sessions, p.places = p.page.Sessions[1:], p.places[1:]
	}
	if more && len(out.Sessions) > 0 {
		out.Next = store.FormatCursor(f, last)
	}
	return out
}

// comesBefore reports whether place a is in front of b in a list.
func comesBefore(f *tapedeck.Filter, a, b store.Place) bool {
	if c := a.Compare(b); f.Ascending {
		return c < 0
	} else {
		return c > 0
	}
}
