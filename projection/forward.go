package projection

import (
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// folds are the folds of a session, each up to an offset of its own. Nil means that
// a fold is not loaded.
type folds struct {
	state   *foldState
	summary *view.SummaryFold
	index   *indexState
}

// next returns the smallest offset that one of the folds needs next, at most at.
func (c *folds) next(at int64) int64 {
	if c.state != nil {
		at = min(at, c.state.next())
	}
	if c.summary != nil {
		at = min(at, c.summary.Next())
	}
	if c.index != nil {
		at = min(at, c.index.next)
	}
	return at
}

// A forwarding folds events up to an offset and saves checkpoints on the way.
type forwarding struct {
	folds
	p        *Projections
	s        *tapedeck.Session
	timeline *view.Timeline
	at       int64
	saving   sync.WaitGroup
	slots    chan struct{} // has an element for each checkpoint that is being written
}

// maxSaving is how many checkpoints are written at the same time. The store groups
// their commits.
const maxSaving = 8

// forward folds the events below offset at. It reads and decodes them once for all
// folds.
func (p *Projections) forward(ctx context.Context, s *tapedeck.Session, t *view.Timeline, c folds, at int64) error {
	f := forwarding{folds: c, p: p, s: s, timeline: t, at: at, slots: make(chan struct{}, maxSaving)}
	defer f.saving.Wait()
	from := c.next(at)
	if c.state != nil {
		c.state.Conversation.UseTimeline(t, at)
	}
	events := p.raw(ctx, s, from, at)
	if c.summary == nil && c.index == nil { // reverted events need not be read
		events = p.events(ctx, s, t, from, at)
	}
	next := from/p.step()*p.step() + p.step()
	for e, err := range events {
		if err != nil {
			return err
		}
		for ; next <= e.Offset; next += p.step() {
			f.saveAt(ctx, next)
		}
		f.apply(&e)
	}
	for ; next <= at; next += p.step() {
		f.saveAt(ctx, next)
	}
	if c.state != nil {
		c.state.Conversation.Advance(at)
	}
	return nil
}

func (f *forwarding) apply(e *tapedeck.Event) {
	if f.state != nil && e.Offset >= f.state.next() {
		f.state.apply(e, f.timeline, f.at)
	}
	if f.summary != nil {
		f.summary.Apply(e)
	}
	if f.index != nil {
		f.index.apply(e)
	}
}

// saveAt saves the checkpoints that are due at an offset.
func (f *forwarding) saveAt(ctx context.Context, n int64) {
	if c := f.state; c != nil && c.next() <= n {
		c.Conversation.Advance(n)
		if n <= f.p.snapshotLimit(f.s) && n-c.saved >= int64(c.Conversation.Threads()) && isPrefix(f.timeline, n, f.at) {
			c.saved = n // a checkpoint has all threads, so it is written only if at least as many events as threads came since the last one
			holder := f.p.holder(ctx, f.s, n)
			f.save(ctx, &holder, states, n, c)
		}
	}
	if n%f.p.options.Every != 0 {
		return
	}
	if f.summary != nil && f.summary.Next() == n && n > f.s.ForkedAt {
		f.save(ctx, f.s, summaries, n, f.summary)
	}
	if f.index != nil && f.index.next == n {
		holder := f.p.holder(ctx, f.s, n)
		f.save(ctx, &holder, indexes, n, f.index.tail.stored())
		f.saveNames(ctx, &holder, n)
		f.index.close(n)
		if n%f.p.wholeStep() == 0 {
			f.save(ctx, &holder, wholes, n, f.index.whole.stored())
		}
	}
}

// save encodes a fold as it is now, and writes it while the next events are folded.
func (f *forwarding) save(ctx context.Context, s *tapedeck.Session, fold string, at int64, v any) {
	b, err := pack(v)
	if err != nil {
		f.p.warnUnsaved(ctx, s, fold, at, err)
		return
	}
	f.write(ctx, s, fold, at, b)
}

func (f *forwarding) write(ctx context.Context, s *tapedeck.Session, fold string, at int64, records ...[]byte) {
	holder := *s
	f.slots <- struct{}{}
	f.saving.Go(func() {
		f.p.save(ctx, &holder, fold, at, records...)
		<-f.slots
	})
}

// saveNames saves the table of names at a boundary.
func (f *forwarding) saveNames(ctx context.Context, holder *tapedeck.Session, n int64) {
	t := f.index.names.table()
	if f.p.span(n) > f.p.options.Every { // the table includes earlier ones, which may still be written
		f.saving.Wait()
		var err error
		if t, err = f.p.joinTables(ctx, f.s, n, t); err != nil {
			f.p.warnUnsaved(ctx, holder, nameTables, n, err)
			return
		}
	}
	f.write(ctx, holder, nameTables, n, t.encode()...)
}

// Advance folds a session up to its head, so that the next reader need not wait. It
// does so in parts; between the parts, other callers can use the session.
func (p *Projections) Advance(ctx context.Context, session string) error {
	for {
		s, _, err := p.session(ctx, session, -1)
		if err != nil {
			return err
		}
		f, err := p.acquire(ctx, &s)
		if err != nil {
			return err
		}
		to, err := p.advance(ctx, f, &s)
		p.release(f)
		if err != nil || to >= s.Head {
			return err
		}
	}
}

// advance folds one part and returns the offset up to which it has folded.
func (p *Projections) advance(ctx context.Context, f *folded, s *tapedeck.Session) (int64, error) {
	t, err := p.timeline(ctx, f, s)
	if err != nil {
		return 0, err
	}
	c := f.folds
	if c.summary == nil {
		if c.summary, err = p.nearestSummary(ctx, s, s.Head); err != nil {
			return 0, err
		}
	}
	if c.index == nil {
		if c.index, err = p.nearestIndex(ctx, s, s.Head); err != nil {
			return 0, err
		}
	}
	if c.state == nil {
		if c.state, err = p.nearest(ctx, s, t, s.Head, s.Head); err != nil {
			return 0, err
		}
	}
	to := min(s.Head, c.next(s.Head)+p.options.Every)
	if next := c.state.next(); next < to && !isPrefix(t, next, to) {
		if c.state, err = p.nearest(ctx, s, t, to, to); err != nil {
			return 0, err
		}
	}
	f.folds = folds{} // a failure leaves them half folded
	later := c
	if c.state.next() > to {
		later.state = nil
	}
	if err := p.forward(ctx, s, t, later, to); err != nil {
		return 0, err
	}
	f.folds = c
	return to, nil
}
