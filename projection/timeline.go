package projection

import (
	"context"
	"iter"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Timeline returns the jumps of a session below offset at. They determine which
// events are active.
func (p *Projections) Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return nil, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return nil, err
	}
	defer p.release(f)
	t, err := p.timeline(ctx, f, &s)
	if err != nil || at == s.Head {
		return t, err
	}
	return view.NewTimeline(below(t.Jumps(), at)), nil
}

func below(jumps []tapedeck.Jump, at int64) []tapedeck.Jump {
	n := 0
	for n < len(jumps) && jumps[n].Offset < at {
		n++
	}
	return jumps[:n]
}

// timeline reads the jumps from the newest back to the first known one. Its cost is
// proportional to the number of new jumps.
func (p *Projections) timeline(ctx context.Context, f *folded, s *tapedeck.Session) (*view.Timeline, error) {
	if f.timeline != nil && f.lastJump == s.LastJump {
		return f.timeline, nil
	}
	var known, jumps []tapedeck.Jump
	if f.timeline != nil {
		known = f.timeline.Jumps()
	}
	for at := s.LastJump; at > f.lastJump; {
		page, err := p.store.Read(ctx, s.ID, tapedeck.Range{From: at, Limit: 1})
		if err != nil {
			return nil, err
		}
		j, ok := jumpOf(page)
		if !ok || j.Offset != at {
			return nil, tapedeck.Errorf(tapedeck.Internal, "session %s has no jump at offset %d", s.ID, at)
		}
		jumps = append(jumps, j)
		at = j.Previous
	}
	slices.Reverse(jumps)
	f.timeline, f.lastJump = view.NewTimeline(append(slices.Clip(known), jumps...)), s.LastJump
	return f.timeline, nil
}

func jumpOf(page tapedeck.Page) (tapedeck.Jump, bool) {
	if len(page.Records) == 0 {
		return tapedeck.Jump{}, false
	}
	e, err := page.Records[0].Event()
	if err != nil {
		return tapedeck.Jump{}, false
	}
	return e.Jump()
}

// Effective yields the events of a session that are active at offset at, beginning
// at offset from. It includes the events of the channel session between them.
func (p *Projections) Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		s, at, err := p.session(ctx, session, at)
		if err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		t, err := p.lockedTimeline(ctx, &s)
		if err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		for e, err := range p.events(ctx, &s, t, from, at) {
			if err == nil && e.Channel != tapedeck.ChannelSession && !t.Has(e.Offset, e.Thread, at) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (p *Projections) lockedTimeline(ctx context.Context, s *tapedeck.Session) (*view.Timeline, error) {
	f, err := p.acquire(ctx, s)
	if err != nil {
		return nil, err
	}
	defer p.release(f)
	return p.timeline(ctx, f, s)
}

// events yields the events from offset from to below offset at. It skips ranges
// without an active event, except the first event of the session, which has its
// initial values, and what a fork or a copy has inherited, up to the event that made it:
// that, and those that made the sessions above, count although a jump goes back below them.
func (p *Projections) events(ctx context.Context, s *tapedeck.Session, t *view.Timeline, from, at int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		needed := int64(1)
		if s.ForkedAt > 0 {
			needed = s.ForkedAt + 1
		}
		for _, r := range stretches(t, needed, from, at) {
			for r.From < r.To {
				page, err := p.store.Read(ctx, s.ID, tapedeck.Range{From: r.From, Limit: int(min(r.To-r.From, tapedeck.DefaultLimit))})
				if err == nil && len(page.Records) == 0 {
					err = p.same(ctx, s) // it is shorter than before, so it was probably recreated
					if err == nil {
						err = tapedeck.Errorf(tapedeck.Internal, "session %s has nothing at offset %d", s.ID, r.From)
					}
				}
				if err != nil {
					yield(tapedeck.Event{}, err)
					return
				}
				for _, rec := range page.Records {
					e, err := rec.Event()
					if !yield(e, err) || err != nil {
						return
					}
				}
				r.From = page.Next
			}
		}
	}
}

// maxThreads is a number of threads that have jumps of their own. With at most this many
// it is cheaper to find the unneeded ranges than to read them.
const maxThreads = 16

// stretches returns the ranges between from and at that can have events which are
// active at offset at, in any thread, or are of inputs, and all below offset needed. They
// include every active jump.
func stretches(t *view.Timeline, needed, from, at int64) []tapedeck.OffsetRange {
	threads := t.Threads("")
	if len(threads) > maxThreads {
		return clip([]tapedeck.OffsetRange{{From: 0, To: at}}, from, at)
	}
	out := []tapedeck.OffsetRange{{From: 0, To: min(needed, at)}}
	for _, name := range threads {
		out = append(out, t.Path(name, at)...)
	}
	for _, j := range t.Jumps() {
		if j.Inputs && j.Offset < at {
			out = append(out, tapedeck.OffsetRange{From: j.To, To: j.Offset})
		}
	}
	return clip(out, from, at)
}

// clip sorts ranges, joins those that touch, and limits them to from and to.
func clip(ranges []tapedeck.OffsetRange, from, to int64) []tapedeck.OffsetRange {
	slices.SortFunc(ranges, func(a, b tapedeck.OffsetRange) int { return int(min(max(a.From-b.From, -1), 1)) })
	var out []tapedeck.OffsetRange
	for _, r := range ranges {
		r.From, r.To = max(r.From, from), min(r.To, to)
		switch n := len(out); {
		case r.From >= r.To:
		case n > 0 && r.From <= out[n-1].To:
			out[n-1].To = max(out[n-1].To, r.To)
		default:
			out = append(out, r)
		}
	}
	return out
}
