package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Diff compares the conversations of two sessions, each as of an offset. A session with
// more messages than one answer may have is [tapedeck.TooLarge].
func (p *Projections) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	sides := [2]side{{id: a, at: atA}, {id: b, at: atB}}
	for i := range sides {
		if err := p.look(ctx, &sides[i]); err != nil {
			return view.Diff{}, err
		}
	}
	return view.Compare(&sides[0].snapshot, &sides[1].snapshot, shared(&sides[0], &sides[1])), nil
}

// A side is one of the two sessions of a diff.
type side struct {
	id       string
	at       int64 // as of this offset; negative for the head
	snapshot view.Snapshot
	events   map[string]int64 // by session, itself and its ancestors: it has their events below this offset
}

// look reads a session and its ancestors.
func (p *Projections) look(ctx context.Context, s *side) error {
	entry, err := p.store.Head(ctx, s.id)
	if err != nil {
		return err
	}
	if s.at > entry.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", s.id, entry.Head, s.at)
	}
	if s.at < 0 {
		s.at = entry.Head
	}
	s.snapshot, err = p.Snapshot(ctx, s.id, view.Query{At: new(s.at), Limit: maxPage})
	if err != nil {
		return err
	}
	if s.snapshot.Earlier > 0 {
		return tapedeck.Errorf(tapedeck.TooLarge, "session %s has more than %d messages and cannot be compared", s.id, maxPage).
			WithHint("compare it as it was at an earlier offset")
	}
	s.events = map[string]int64{s.id: s.at}
	for below := s.at; entry.Parent != ""; {
		below = min(below, entry.ForkedAt)
		s.events[entry.Parent] = below
		child := entry
		entry = tapedeck.Session{} // the ancestors of a deleted session are not known
		if parent, err := p.store.Head(ctx, child.Parent); err == nil {
			entry = parent
		}
	}
	return nil
}

// shared returns the number of events that two sessions share, because one is a fork of
// the other or both are forks of a third.
func shared(a, b *side) (n int64) {
	for id, below := range a.events {
		n = max(n, min(below, b.events[id]))
	}
	return n
}
