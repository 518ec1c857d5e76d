package projection

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of a tree.
const (
	maxBranches      = 1000 // sessions
	maxBranchIndexes = 32   // other sessions of which it says what began in them
)

// Branches returns the tree around a session: its ancestors, itself, what was
// taken back in it, and the forks of all of them. Of very large families a part.
func (p *Projections) Branches(ctx context.Context, session string, at int64) ([]view.Branch, error) {
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
	if err != nil {
		return nil, err
	}
	family := view.BranchInput{Session: s, At: at}
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
	if family.Index, err = p.index(ctx, f, &s, at); err != nil {
		return nil, err
	}
	for parent := s.Parent; parent != "" && len(family.Ancestors) < maxBranches; {
		a, err := p.store.Head(ctx, parent)
		if err != nil { // it was deleted; what is above it is not known
			break
		}
		family.Ancestors = append(family.Ancestors, a)
		parent = a.Parent
	}
	if family.Forks, err = p.forks(ctx, &s, family.Ancestors); err != nil {
		return nil, err
	}
	if family.Indexes, err = p.branchIndexes(ctx, family.Ancestors, family.Forks); err != nil {
		return nil, err
	}
	return view.Branches(family), p.same(ctx, &s)
}

// told returns the indexes of the first of some sessions, as far as they say what
// began in each and is in force.
func (p *Projections) branchIndexes(ctx context.Context, lists ...[]tapedeck.Session) (map[string]view.Index, error) {
	out := map[string]view.Index{}
	for _, list := range lists {
		for i := range list {
			if len(out) >= maxBranchIndexes {
				return out, nil
			}
			s := &list[i]
			x, err := p.indexFrom(ctx, s, s.ForkedAt, s.Head)
			if err != nil {
				return nil, err
			}
			t, err := p.timeline(ctx, new(folded), s) // a kept one is locked, by whoever may be waiting for us
			if err != nil {
				return nil, err
			}
			x.Invocations = slices.DeleteFunc(x.Invocations, func(v view.IndexedInvocation) bool {
				return !t.Has(v.First, v.Thread, s.Head)
			})
			out[s.ID] = x
		}
	}
	return out, nil
}

// forks returns the forks of a session and those of its forks, then those of its
// ancestors, the nearest first.
func (p *Projections) forks(ctx context.Context, s *tapedeck.Session, ancestors []tapedeck.Session) ([]tapedeck.Session, error) {
	var out []tapedeck.Session
	queue, seen := []string{s.ID}, map[string]bool{s.ID: true}
	for _, a := range ancestors {
		seen[a.ID] = true
	}
	for above := ancestors; len(queue) > 0 && len(out) < maxBranches; queue = queue[1:] {
		for cursor := ""; ; {
			page, next, err := p.store.List(ctx, tapedeck.Filter{Parent: queue[0], Cursor: cursor, Limit: maxBranches})
			if err != nil {
				return nil, err
			}
			for _, s := range page {
				if !seen[s.ID] {
					out, queue = append(out, s), append(queue, s.ID)
				}
			}
			if cursor = next; next == "" || len(out) >= maxBranches {
				break
			}
		}
		if len(queue) == 1 && len(above) > 0 {
			queue, above = append(queue, above[0].ID), above[1:]
		}
	}
	return out, nil
}
