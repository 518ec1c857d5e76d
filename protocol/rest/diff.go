package rest

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

var diffParameters = []string{"a", "b", "at_a", "at_b"}

// diff compares two conversations.
func (h *handler) diff(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, diffParameters...)
	a := side{id: q.ID("a"), at: q.Offset("at_a", -1)}
	b := side{id: q.ID("b"), at: q.Offset("at_b", -1)}
	if a.id == "" || b.id == "" {
		q.Fail("the parameters a and b must name two sessions")
	}
	if q.Err != nil {
		return q.Err
	}
	for _, s := range []*side{&a, &b} {
		if err := h.look(r.Context(), s); err != nil {
			return err
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, view.Compare(&a.snapshot, &b.snapshot, shared(&a, &b)))
}

// A side is one of the two sessions.
type side struct {
	id       string
	at       int64 // as of this offset; negative for the head
	snapshot view.Snapshot
	events   map[string]int64 // by session, itself and its ancestors: it has their events below this offset
}

// look reads a session and its ancestors.
func (h *handler) look(ctx context.Context, s *side) error {
	entry, err := h.Sessions.Head(ctx, s.id)
	if err != nil {
		return err
	}
	if s.at > entry.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", s.id, entry.Head, s.at)
	}
	if s.at < 0 {
		s.at = entry.Head
	}
	s.snapshot, err = h.Views.Snapshot(ctx, s.id, view.Query{At: new(s.at), Limit: maxItems})
	if err != nil {
		return err
	}
	if s.snapshot.Earlier > 0 {
		return tapedeck.Errorf(tapedeck.TooLarge, "session %s has more than %d messages and cannot be compared", s.id, maxItems).
			WithHint("compare it as it was at an earlier offset")
	}
	s.events = map[string]int64{s.id: s.at}
	for below := s.at; entry.Parent != ""; {
		below = min(below, entry.ForkedAt)
		s.events[entry.Parent] = below
		child := entry
		entry = tapedeck.Session{} // the ancestors of a deleted session are not known
		if parent, err := h.Sessions.Head(ctx, child.Parent); err == nil {
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
