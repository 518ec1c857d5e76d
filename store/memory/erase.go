package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Erase implements [tapedeck.Log].
func (m *Store) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	done, err := m.erase(ctx, &e)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	notice := m.observers.Erasure(e.Session, done.Forks)
	if err := notice.Deliver(context.WithoutCancel(ctx)); err != nil {
		go store.Retry(m.running, func() bool { return notice.Deliver(m.running) == nil })
		return tapedeck.Erased{}, tapedeck.Errorf(tapedeck.Unavailable, "the events are erased, but views or the search index may still have copies of them").
			WithHint("the server removes them as soon as it can").Because(err)
	}
	return done, nil
}

func (m *Store) erase(ctx context.Context, e *tapedeck.Erasure) (tapedeck.Erased, error) {
	now := m.now()
	if err := store.CheckErasure(e); err != nil {
		return tapedeck.Erased{}, err
	}
	events, drafts, err := tapedeck.Drafts(e.Events, nil, now)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	unlock, err := m.enter(ctx)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	defer unlock()
	l, err := m.find(e.Session)
	if err == nil {
		err = tapedeck.Condition(ctx)(&l.Session)
	}
	if err == nil {
		err = store.DecideErasure(e, &l.Session)
	}
	if err != nil {
		return tapedeck.Erased{}, err
	}
	blank, err := l.blanks(e.Ranges)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	all := store.ErasesAll(e, &l.Session) // before the receipt is appended
	done, err := m.write(l, &tapedeck.Append{Session: e.Session, Events: events, Check: e.Check}, drafts, now, true)
	if err != nil {
		return tapedeck.Erased{}, err
	}
	if all {
		delete(m.pushes, l.Gen)
	}
	done.Closed = l.Closed
	return tapedeck.Erased{Appended: done, Forks: m.replace(l, blank)}, nil
}

// blanks returns the records in ranges without their payloads, by offset.
func (l *log) blanks(ranges []tapedeck.OffsetRange) (map[int64]tapedeck.Record, error) {
	out := map[int64]tapedeck.Record{}
	for _, r := range ranges {
		for rec := range l.forward(r.From) {
			if rec.Offset >= r.To {
				break
			}
			b, err := store.EraseRecord(rec)
			if err != nil {
				return nil, err
			}
			out[rec.Offset] = b
		}
	}
	return out, nil
}

// replace replaces records of l, and of all sessions that share them, because they do
// not always share the memory. It returns the ids of the forks that share them and
// can be read. Requires m.mu.
func (m *Store) replace(l *log, blank map[int64]tapedeck.Record) []string {
	first := slices.Min(slices.Collect(maps.Keys(blank)))
	var forks []string
	for _, h := range m.order {
		shared, ok := h.shares(l)
		if !ok || shared <= first {
			continue
		}
		h.overwrite(blank, shared)
		if h != l && !h.gone {
			forks = append(forks, h.ID)
		}
	}
	return forks
}

// shares returns the offset below which l and ancestor have the same records.
// ancestor may be l itself. It reports false if it is no ancestor.
func (l *log) shares(ancestor *log) (below int64, ok bool) {
	for below = l.Head; l != ancestor; l = l.parent {
		if l.parent == nil {
			return 0, false
		}
		below = min(below, l.ForkedAt)
	}
	return below, true
}

// overwrite replaces the records of l that are below an offset.
func (l *log) overwrite(blank map[int64]tapedeck.Record, below int64) {
	start := int64(0)
	for _, span := range l.spans {
		for i := range span {
			if r, ok := blank[start+int64(i)]; ok && r.Offset < below {
				span[i] = r
			}
		}
		start += int64(len(span))
	}
}
