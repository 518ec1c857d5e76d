package shards

import (
	"context"
	"strconv"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// on calls a method of the shard that has a session. It asks the likely one first, and
// looks for the session only if that does not know it: only a fork can be elsewhere than
// its id says.
func on[T any](ctx context.Context, s *Store, id string, call func(sh *Shard) (T, error)) (T, error) {
	at, ok := s.known.get(id)
	if !ok {
		at = s.home(id)
	}
	v, err := call(&s.shards[at])
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return v, err
	}
	other, lookErr := s.find(ctx, id)
	if lookErr != nil {
		return v, lookErr
	}
	if other == at {
		return v, err
	}
	return call(&s.shards[other])
}

// find returns the shard that has a session, also one that was deleted while forks need it.
// It is the home of the id if no shard has the session.
func (s *Store) find(ctx context.Context, id string) (int, error) {
	home := s.home(id)
	_, err := s.shards[home].Store.Head(ctx, id)
	switch tapedeck.KindOf(err) {
	case "", tapedeck.Gone:
		return home, nil
	case tapedeck.NotFound:
	default:
		return home, err
	}
	at, ok, err := s.pointer(ctx, id)
	if err != nil || !ok {
		return home, err
	}
	return at, nil
}

// pointer returns the shard that the pointer of an id names. It reports false if there is
// no pointer.
func (s *Store) pointer(ctx context.Context, id string) (at int, ok bool, err error) {
	home := s.home(id)
	p, err := s.shards[home].Store.Head(ctx, store.PointerPrefix+id)
	switch {
	case tapedeck.KindOf(err) == tapedeck.NotFound:
		return home, false, nil
	case err != nil:
		return home, false, err
	}
	at, err = s.target(&p)
	if err == nil {
		s.known.put(id, at)
	}
	return at, err == nil, err
}

// target returns the shard that a pointer names.
func (s *Store) target(p *tapedeck.Session) (int, error) {
	at, err := strconv.Atoi(p.Origin)
	if err != nil || at < 0 || at >= len(s.shards) {
		return 0, tapedeck.Errorf(tapedeck.Internal, "%q does not say in which database the session is", p.ID).
			WithHint("run `tapedeck verify` with all databases")
	}
	return at, nil
}

// maxKnown limits how many pointers are kept in memory.
const maxKnown = 1 << 17

// pointers are those that were followed lately. One that is wrong does no harm: its shard
// does not know the session, and then find asks again.
type pointers struct {
	mu sync.RWMutex
	at map[string]int
}

func (p *pointers) get(id string) (int, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	at, ok := p.at[id]
	return at, ok
}

func (p *pointers) put(id string, at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil || len(p.at) >= maxKnown {
		p.at = map[string]int{}
	}
	p.at[id] = at
}

func (p *pointers) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, id)
}
