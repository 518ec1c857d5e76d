package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A standing is everything of a session that depends on what is in force.
type foldState struct {
	Conversation *view.Conversation `json:"conversation"`
	Instances    *view.InstanceFold `json:"instances"`

	saved int64 // offset of its newest checkpoint
}

func newFoldState() *foldState {
	return &foldState{Conversation: new(view.Conversation), Instances: new(view.InstanceFold)}
}

// apply folds an event, if it is in force as of an offset.
func (c *foldState) apply(e *tapedeck.Event, t *view.Timeline, at int64) {
	c.Conversation.Apply(e)
	if e.Channel == tapedeck.ChannelSession || t.Has(e.Offset, e.Thread, at) {
		c.Instances.Apply(e)
	}
}

// next returns the offset of the event that is waited for.
func (c *foldState) next() int64 { return c.Conversation.Through() + 1 }

// Instances returns the agents that take part in a session.
func (p *Projections) Instances(ctx context.Context, session string, at int64) (view.Instances, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return nil, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return nil, err
	}
	defer p.release(f)
	c, err := p.stateAt(ctx, f, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	if err != nil {
		return nil, err
	}
	return c.Instances.Instances(s.ID), nil
}

// Snapshot returns a part of the conversation of a session. Title, owner, agent
// and labels are those that the session has now: they are not taken back.
func (p *Projections) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	s, at, err := p.session(ctx, session, q.At)
	if err != nil {
		return view.Snapshot{}, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return view.Snapshot{}, err
	}
	defer p.release(f)
	stands, err := p.stateAt(ctx, f, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	if err != nil {
		return view.Snapshot{}, err
	}
	c := stands.Conversation
	snapshot := c.Snapshot()
	if q.Thread != "" {
		snapshot = c.Thread(q.Thread)
	}
	if err := p.page(ctx, f, &s, c, &snapshot, q); err != nil {
		return view.Snapshot{}, err
	}
	i := &snapshot.Session
	i.ID, i.Title, i.Owner, i.Agent, i.Labels = s.ID, s.Title, s.Owner, s.Agent, s.Labels
	i.Closed = s.Closed && at == s.Head
	return snapshot, nil
}

// standing returns how a session stands as of an offset. It is the caller's
// until f is unlocked.
func (p *Projections) stateAt(ctx context.Context, f *folded, s *tapedeck.Session, at int64) (*foldState, error) {
	t, err := p.timeline(ctx, f, s)
	if err != nil {
		return nil, err
	}
	c := f.folds.state
	keep := at == s.Head
	if c == nil || c.next() > at || !isPrefix(t, c.next(), at) {
		if c, err = p.nearest(ctx, s, t, at, at); err != nil {
			return nil, err
		}
	} else {
		keep = true
	}
	if keep {
		f.folds.state = nil // unless it comes through
	}
	if err := p.forward(ctx, s, t, folds{state: c}, at); err != nil {
		return nil, err
	}
	if keep {
		f.folds.state = c
	}
	return c, nil
}

// isPrefix reports whether what is in force as of offset from is all that is in
// force below it as of offset at: no jump between them goes back below it. It
// may say no where it is in fact.
func isPrefix(t *view.Timeline, from, at int64) bool {
	for _, j := range t.Jumps() {
		if from <= j.Offset && j.Offset < at && j.To < from {
			return false
		}
	}
	return true
}

// nearest returns the standing as of the newest checkpoint up to an offset
// from which one as of offset at can be folded; if there is none, an empty one.
func (p *Projections) nearest(ctx context.Context, s *tapedeck.Session, t *view.Timeline, upTo, at int64) (*foldState, error) {
	step := p.step()
	for k := min(upTo, p.snapshotLimit(s)) / step * step; k > 0; k -= step {
		if !isPrefix(t, k, at) {
			continue
		}
		c := newFoldState()
		holder := p.holder(ctx, s, k)
		found, err := p.load(ctx, &holder, states, k, c)
		if err != nil {
			return nil, err
		}
		if found && c.next() == k {
			c.saved = k
			return c, nil
		}
	}
	return newFoldState(), nil
}

// walkTo folds the events below offset to that c does not have yet, as far as
// they are in force as of offset at. At each offset at which there may be a
// checkpoint it asks whether to go on.
func (p *Projections) walkTo(ctx context.Context, s *tapedeck.Session, t *view.Timeline, c *foldState, at, to int64, boundary func(int64) bool) error {
	c.Conversation.Follow(t, at)
	next := c.next()/p.step()*p.step() + p.step()
	for e, err := range p.events(ctx, s, t, c.next(), at) {
		if err == nil && e.Offset >= to {
			break
		}
		if err != nil {
			return err
		}
		for ; next <= e.Offset; next += p.step() {
			c.Conversation.Advance(next)
			if !boundary(next) {
				return nil
			}
		}
		c.Conversation.Apply(&e)
	}
	for ; next <= to; next += p.step() {
		c.Conversation.Advance(next)
		if !boundary(next) {
			return nil
		}
	}
	c.Conversation.Advance(to)
	return nil
}

// finer is how many times more often standings are put away than the rest: to
// seek is to ask for one.
const snapshotsPerInterval = 5

func (p *Projections) step() int64 { return max(1, p.options.Every/snapshotsPerInterval) }

// through returns how far there are checkpoints of standings. What comes after
// is not long, and may not get long.
func (p *Projections) snapshotLimit(s *tapedeck.Session) int64 {
	return s.Head / p.options.Every * p.options.Every
}

// after returns the first offset above n at which there may be a checkpoint.
func (p *Projections) nextBoundary(n int64) int64 { return (n/p.options.Every + 1) * p.options.Every }
