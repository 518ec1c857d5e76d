package shards

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Create implements [tapedeck.Catalogue]. The pointer of a fork is written before the fork:
// after a crash in between it leads to a session that does not exist, which is the same as
// none.
func (s *Store) Create(ctx context.Context, spec tapedeck.Spec) (tapedeck.Created, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Created{}, err
	}
	if err := store.CheckSpec(&spec); err != nil {
		return tapedeck.Created{}, err
	}
	if spec.Kind == tapedeck.KindView { // never a fork
		return s.shards[s.home(spec.ID)].Store.Create(ctx, spec)
	}
	defer s.ids.lock(spec.ID)()
	at, pointed, err := s.whereToCreate(ctx, spec.ID)
	if err != nil {
		return tapedeck.Created{}, err
	}
	if spec.Parent == "" {
		return s.shards[at].Store.Create(ctx, spec)
	}
	to, err := s.find(ctx, spec.Parent)
	if err != nil {
		return tapedeck.Created{}, err
	}
	if to != at {
		exists, err := s.shards[at].has(ctx, spec.ID)
		switch {
		case err != nil:
			return tapedeck.Created{}, err
		case exists:
			to = at // Create returns it, whatever its parent is
		}
	}
	if to != s.home(spec.ID) {
		return s.createAway(ctx, spec, to)
	}
	if pointed {
		if err := s.unpoint(ctx, spec.ID); err != nil {
			return tapedeck.Created{}, err
		}
	}
	return s.shards[to].Store.Create(ctx, spec)
}

// whereToCreate returns the shard that has the session of an id, or that must decide
// whether it exists, and whether there is a pointer. While there is one, only the shard that
// it names creates the session, so no id is given twice.
func (s *Store) whereToCreate(ctx context.Context, id string) (at int, pointed bool, err error) {
	home := s.home(id)
	at, pointed, err = s.pointer(ctx, id)
	if err != nil || !pointed {
		return home, false, err
	}
	if exists, err := s.shards[home].has(ctx, id); err != nil || exists {
		return home, true, err
	}
	return at, true, nil
}

// createAway creates a session in another shard than its id says, with a pointer.
func (s *Store) createAway(ctx context.Context, spec tapedeck.Spec, to int) (tapedeck.Created, error) {
	at, err := s.point(ctx, spec.ID, to)
	if err != nil {
		return tapedeck.Created{}, err
	}
	done, err := s.shards[at].Store.Create(ctx, spec)
	if err == nil {
		s.known.put(spec.ID, at)
	} else if isRefusal(err) {
		if exists, err := s.shards[at].has(ctx, spec.ID); err == nil && !exists {
			_ = s.unpoint(ctx, spec.ID) // a pointer that is left does no harm
		}
	}
	return done, err
}

// isRefusal reports whether an error says for certain that nothing was stored.
func isRefusal(err error) bool {
	switch tapedeck.KindOf(err) {
	case tapedeck.Invalid, tapedeck.Unauthorized, tapedeck.Forbidden, tapedeck.NotFound, tapedeck.Conflict, tapedeck.Gone, tapedeck.TooLarge:
		return true
	}
	return false
}

// point makes the pointer of an id name a shard, and returns the shard that it names then:
// another one if that has the session.
func (s *Store) point(ctx context.Context, id string, to int) (int, error) {
	home := &s.shards[s.home(id)]
	for {
		p, err := home.Store.Create(tapedeck.OnlyIf(ctx, nil), tapedeck.Spec{ID: store.PointerPrefix + id, Kind: store.KindPointer, Origin: strconv.Itoa(to)})
		if err != nil || p.New {
			return to, err
		}
		at, err := s.target(&p.Session)
		if err != nil || at == to {
			return to, err
		}
		// It was left by a create that failed.
		if exists, err := s.shards[at].has(ctx, id); err != nil || exists {
			return at, err
		}
		if err := s.unpoint(ctx, id); err != nil {
			return to, err
		}
	}
}

// unpoint removes the pointer of an id, if there is one.
func (s *Store) unpoint(ctx context.Context, id string) error {
	s.known.forget(id)
	if _, ok, err := s.pointer(ctx, id); err != nil || !ok {
		return err
	}
	s.known.forget(id)
	err := s.shards[s.home(id)].Store.Delete(tapedeck.OnlyIf(ctx, nil), store.PointerPrefix+id)
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return nil
	}
	return err
}

// errSeen refuses the append of has.
var errSeen = errors.New("the session exists")

// has reports whether a shard has a session, also one that was deleted while forks need it.
// It asks with an append that is always refused: only the writer of a shard knows of a
// commit whose outcome was not certain, and of what waits before it.
func (sh *Shard) has(ctx context.Context, id string) (bool, error) {
	a := tapedeck.Append{Session: id, Check: func(*tapedeck.Session) error { return errSeen }}
	if strings.Contains(id, "/") { // a stream or a view
		a.Chunks = [][]byte{{}}
	} else {
		a.Events = []tapedeck.Event{{Type: tapedeck.Custom}}
	}
	_, err := sh.Store.Append(tapedeck.OnlyIf(ctx, nil), a) // also if the caller may not use it
	switch {
	case errors.Is(err, errSeen):
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound:
		return false, nil
	case tapedeck.Gone, tapedeck.Conflict, tapedeck.Invalid: // deleted, closed, or of another kind
		return true, nil
	}
	return false, err
}

// locks has a lock for each id; some ids share one.
type locks [256]sync.Mutex

// lock locks an id and returns what unlocks it.
func (l *locks) lock(id string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	mu := &l[h.Sum32()%uint32(len(l))]
	mu.Lock()
	return mu.Unlock
}
