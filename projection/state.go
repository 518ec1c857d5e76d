package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A foldState has the folds that depend on which events are active.
type foldState struct {
	Conversation *view.Conversation  `json:"conversation"`
	Instances    *view.InstanceFold  `json:"instances"`
	Workflows    *view.WorkflowFolds `json:"workflows"`

	saved int64 // the offset of its newest checkpoint
}

func newFoldState() *foldState {
	return &foldState{Conversation: new(view.Conversation), Instances: new(view.InstanceFold), Workflows: new(view.WorkflowFolds)}
}

// apply folds an event that is active at offset at; it skips any other.
func (c *foldState) apply(e *tapedeck.Event, t *view.Timeline, at int64) {
	c.Conversation.Apply(e)
	if e.Channel == tapedeck.ChannelSession || t.Has(e.Offset, e.Thread, at) {
		c.Instances.Apply(e)
		c.Workflows.Apply(e)
	}
}

// next returns the offset of the event that the state needs next.
func (c *foldState) next() int64 { return c.Conversation.Through() + 1 }

// Instances returns the agents of a session at an offset.
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

// Snapshot returns the part of a conversation that q asks for. Title, owner, agent
// and labels are always the current ones, because a rewind does not revert them.
func (p *Projections) Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error) {
	at := int64(-1)
	if q.At != nil {
		at = *q.At
	}
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Snapshot{}, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return view.Snapshot{}, err
	}
	defer p.release(f)
	state, err := p.stateAt(ctx, f, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	if err != nil {
		return view.Snapshot{}, err
	}
	c := state.Conversation
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

// stateAt returns the state of a session at an offset. The caller may use it until
// it releases f.
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
		f.folds.state = nil // a failure leaves it half folded
	}
	if err := p.forward(ctx, s, t, folds{state: c}, at); err != nil {
		return nil, err
	}
	if keep {
		f.folds.state = c
	}
	return c, nil
}

// isPrefix reports whether the same events below offset from are active at from and
// at offset at, because no jump between them goes back below from. It can report
// false even if they are the same.
func isPrefix(t *view.Timeline, from, at int64) bool {
	for _, j := range t.Jumps() {
		if from <= j.Offset && j.Offset < at && j.To < from {
			return false
		}
	}
	return true
}

// nearest returns the state of the newest checkpoint, up to offset upTo, from which
// the state at offset at can be folded. Without one it returns an empty state.
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

// walkTo folds the events below offset to that c lacks and that are active at
// offset at. At each offset that can have a checkpoint it calls boundary, and stops
// if that returns false.
func (p *Projections) walkTo(ctx context.Context, s *tapedeck.Session, t *view.Timeline, c *foldState, at, to int64, boundary func(int64) bool) error {
	c.Conversation.UseTimeline(t, at)
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

// snapshotsPerInterval is how many checkpoints of states there are for each one of
// the other kinds. Every seek needs one.
const snapshotsPerInterval = 5

func (p *Projections) step() int64 { return max(1, p.options.Every/snapshotsPerInterval) }

// snapshotLimit returns the offset up to which states have checkpoints. The events
// after it are fewer than Options.Every.
func (p *Projections) snapshotLimit(s *tapedeck.Session) int64 {
	return s.Head / p.options.Every * p.options.Every
}

// nextBoundary returns the first multiple of Options.Every above n.
func (p *Projections) nextBoundary(n int64) int64 { return (n/p.options.Every + 1) * p.options.Every }
