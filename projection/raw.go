package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// The views below fold all events, also reverted ones: tokens that were spent stay
// spent.

// Summary returns the summary of a session's own events, without those that it
// shares with its parent.
func (p *Projections) Summary(ctx context.Context, session string, at int64) (view.Summary, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Summary{}, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return view.Summary{}, err
	}
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
	fold := f.folds.summary
	if fold == nil || fold.Next() > at {
		var err error
		if fold, err = p.nearestSummary(ctx, s, at); err != nil {
			return nil, err
		}
	}
	if at == s.Head {
		f.folds.summary = nil // a failure leaves it half folded
	}
	if err := p.forward(ctx, s, view.NewTimeline(nil), folds{summary: fold}, at); err != nil {
		return nil, err
	}
	if at == s.Head {
		f.folds.summary = fold
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

// raw yields the events from offset from to below offset at.
func (p *Projections) raw(ctx context.Context, s *tapedeck.Session, from, at int64) func(func(tapedeck.Event, error) bool) {
	return p.events(ctx, s, view.NewTimeline(nil), from, at)
}
