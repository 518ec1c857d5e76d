package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// What is here folds the log as it is, without regard to what is in force: what
// was spent is spent.

// Summary returns the summary of a session: of its own events, not of those that
// it shares with its parent.
func (p *Projections) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Summary{}, err
	}
	f := p.of(&s)
	defer p.release(f)
	fold, err := p.summary(ctx, f, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	if err != nil {
		return view.Summary{}, err
	}
	return fold.Summary(), nil
}

func (p *Projections) summary(ctx context.Context, f *folded, s *tapedeck.Session, at int64) (*view.SummaryFold, error) {
	fold := f.summary
	if fold == nil || fold.Next() > at {
		var err error
		if fold, err = p.nearestSummary(ctx, s, at); err != nil {
			return nil, err
		}
	}
	if at == s.Head {
		f.summary = nil // unless it comes through
	}
	next := p.after(fold.Next())
	for e, err := range p.raw(ctx, s, max(fold.Next(), s.ForkedAt), at) {
		if err != nil {
			return nil, err
		}
		if fold.Apply(&e); e.Offset+1 == next {
			p.save(ctx, s, summaries, next, fold)
			next += p.options.Every
		}
	}
	if at == s.Head {
		f.summary = fold
	}
	return fold, nil
}

func (p *Projections) nearestSummary(ctx context.Context, s *tapedeck.Session, at int64) (*view.SummaryFold, error) {
	for k := at / p.options.Every * p.options.Every; k > s.ForkedAt; k -= p.options.Every {
		fold := view.NewSummaryFold(s.ForkedAt)
		found, err := p.load(ctx, s, summaries, k, fold)
		if err != nil || found && fold.Next() == k {
			return fold, err
		}
	}
	return view.NewSummaryFold(s.ForkedAt), nil
}

// Index returns the index of a session's log, those events included that it
// shares with its parent.
func (p *Projections) Index(ctx context.Context, session string, at int64) (view.Index, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Index{}, err
	}
	f := p.of(&s) // so that a piece is not kept while its events are erased
	defer p.release(f)
	x, err := p.index(ctx, &s, at)
	if err == nil {
		err = p.same(ctx, &s)
	}
	return x, err
}

// index joins the pieces, of which each covers the events between two offsets at
// which there may be checkpoints.
func (p *Projections) index(ctx context.Context, s *tapedeck.Session, at int64) (view.Index, error) {
	return p.indexFrom(ctx, s, 0, at)
}

// indexFrom is the index of the events from an offset. The first piece is no whole
// one if that is not where a checkpoint may be.
func (p *Projections) indexFrom(ctx context.Context, s *tapedeck.Session, from, at int64) (view.Index, error) {
	var x view.Index
	for from < at {
		to := from - from%p.options.Every + p.options.Every
		whole := to <= at && from == to-p.options.Every
		var piece view.Index
		var holder tapedeck.Session
		found := false
		if whole {
			var err error
			holder = p.holder(ctx, s, to)
			if found, err = p.load(ctx, &holder, indexes, to, &piece); err != nil {
				return x, err
			}
		}
		if !found || piece.From != from || piece.At != to {
			piece = view.Index{}
			for e, err := range p.raw(ctx, s, from, min(to, at)) {
				if err != nil {
					return x, err
				}
				piece.Apply(&e)
			}
			if whole {
				p.save(ctx, &holder, indexes, to, piece)
			}
		}
		x.Append(piece)
		if to <= at {
			x.Keyframes = append(x.Keyframes, to)
		}
		from = to
	}
	return x, nil
}

// raw yields the events with offsets from from and below at.
func (p *Projections) raw(ctx context.Context, s *tapedeck.Session, from, at int64) func(func(tapedeck.Event, error) bool) {
	return p.events(ctx, s, view.NewTimeline(nil), from, at)
}
