package rest

import (
	"context"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// foldsKept is how many conversations are kept folded: of the sessions that
// were asked for last, so that many who join a long one cost one fold of it.
const foldsKept = 16

// folds keeps conversations as they stood when they were last asked for.
type folds struct {
	mu   sync.Mutex
	kept []*folded // the last asked for last
}

// A folded conversation goes on where it stopped.
type folded struct {
	session string
	gen     int64 // incarnation of the session: deleted and made anew, it is another

	mu           sync.Mutex
	conversation view.Conversation
}

func (k *folds) of(s *tapedeck.Session) *folded {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.kept, func(f *folded) bool { return f.session == s.ID })
	f := &folded{session: s.ID, gen: s.Gen}
	switch {
	case i >= 0:
		if k.kept[i].gen == s.Gen {
			f = k.kept[i]
		}
		k.kept = slices.Delete(k.kept, i, i+1)
	case len(k.kept) == foldsKept:
		k.kept = slices.Delete(k.kept, 0, 1)
	}
	k.kept = append(k.kept, f)
	return f
}

// latest returns a session's conversation at its head, as s says it, or a
// little later.
func (h *handler) latest(ctx context.Context, s *tapedeck.Session, thread string) (view.Snapshot, error) {
	f := h.folds.of(s)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.apply(ctx, s, &f.conversation, s.Head); err != nil {
		return view.Snapshot{}, err
	}
	return selected(&f.conversation, thread), nil
}

// at returns a session's conversation at an offset.
func (h *handler) at(ctx context.Context, s *tapedeck.Session, at int64, thread string) (view.Snapshot, error) {
	var c view.Conversation
	if err := h.apply(ctx, s, &c, at); err != nil {
		return view.Snapshot{}, err
	}
	return selected(&c, thread), nil
}

func selected(c *view.Conversation, thread string) view.Snapshot {
	if thread == "" {
		return c.Snapshot()
	}
	return c.Thread(thread)
}

// apply folds the events up to offset at that c does not have yet.
func (h *handler) apply(ctx context.Context, s *tapedeck.Session, c *view.Conversation, at int64) error {
	for c.Through()+1 < at {
		p, err := h.Sessions.Read(ctx, s.ID, tapedeck.Range{From: c.Through() + 1, Limit: int(min(at-c.Through()-1, tapedeck.DefaultLimit))})
		if err != nil {
			return err
		}
		for _, rec := range p.Records {
			e, err := rec.Event()
			if err != nil {
				return err
			}
			c.Apply(&e)
		}
	}
	now, err := h.Sessions.Head(ctx, s.ID)
	if err == nil && now.Gen != s.Gen {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and made anew in the meantime", s.ID).
			WithHint("ask again")
	}
	return err
}
