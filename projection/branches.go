package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxFamily is the most sessions of a tree.
const maxFamily = 1000

// Branches returns the tree around a session: its ancestors, itself, what was
// taken back in it, and its forks. Of very large families a part.
func (p *Projections) Branches(ctx context.Context, session string, at int64) ([]view.Branch, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return nil, err
	}
	f := p.of(&s)
	defer p.release(f)
	t, err := p.timeline(ctx, f, &s)
	if err != nil {
		return nil, err
	}
	family := view.Family{Session: s, At: at}
	for _, j := range below(t.Jumps(), at) {
		page, err := p.store.Read(ctx, session, tapedeck.Range{From: j.Offset, Limit: 1})
		if err != nil || len(page.Records) == 0 {
			return nil, err
		}
		e, err := page.Records[0].Event()
		if err != nil {
			return nil, err
		}
		family.Jumps = append(family.Jumps, e)
	}
	if family.Index, err = p.index(ctx, &s, at); err != nil {
		return nil, err
	}
	if family.Forks, err = p.forks(ctx, session); err != nil {
		return nil, err
	}
	for parent := s.Parent; parent != "" && len(family.Ancestors) < maxFamily; {
		a, err := p.store.Head(ctx, parent)
		if err != nil { // it was deleted; what is above it is not known
			break
		}
		family.Ancestors = append(family.Ancestors, a)
		parent = a.Parent
	}
	return view.Branches(family), p.same(ctx, &s)
}

// forks returns the forks of a session and those of its forks.
func (p *Projections) forks(ctx context.Context, session string) ([]tapedeck.Session, error) {
	var out []tapedeck.Session
	for queue := []string{session}; len(queue) > 0 && len(out) < maxFamily; queue = queue[1:] {
		for cursor := ""; ; {
			page, next, err := p.store.List(ctx, tapedeck.Filter{Parent: queue[0], Cursor: cursor, Limit: maxFamily})
			if err != nil {
				return nil, err
			}
			for _, s := range page {
				out, queue = append(out, s), append(queue, s.ID)
			}
			if cursor = next; next == "" || len(out) >= maxFamily {
				break
			}
		}
	}
	return out, nil
}
