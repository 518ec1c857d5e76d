package projection

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of a tree.
const (
	maxBranches      = 1000 // ancestors, and forks
	maxBranchIndexes = 32   // other sessions whose invocations are listed
)

// Branches returns the tree around a session: its ancestors, the session, its
// reverted branches, and all their forks.
func (p *Projections) Branches(ctx context.Context, session string, at int64) (view.Tree, error) {
	s, at, err := p.session(ctx, session, at)
	if err != nil {
		return view.Tree{}, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return view.Tree{}, err
	}
	defer p.release(f)
	t, err := p.timeline(ctx, f, &s)
	if err != nil {
		return view.Tree{}, err
	}
	tree := view.BranchInput{Session: s, At: at}
	for _, j := range below(t.Jumps(), at) {
		page, err := p.store.Read(ctx, session, tapedeck.Range{From: j.Offset, Limit: 1})
		if err != nil || len(page.Records) == 0 {
			return view.Tree{}, err
		}
		e, err := page.Records[0].Event()
		if err != nil {
			return view.Tree{}, err
		}
		tree.Jumps = append(tree.Jumps, e)
	}
	if tree.Index, err = p.index(ctx, f, &s, at); err != nil {
		return view.Tree{}, err
	}
	cut := false
	for parent := s.Parent; parent != ""; {
		a, err := p.store.Head(ctx, parent)
		if err != nil { // it was deleted, and its own ancestors are unknown
			break
		}
		if len(tree.Ancestors) == maxBranches {
			cut = true
			break
		}
		tree.Ancestors = append(tree.Ancestors, a)
		parent = a.Parent
	}
	if tree.Forks, err = p.forks(ctx, &s, tree.Ancestors); err != nil {
		return view.Tree{}, err
	}
	if len(tree.Forks) > maxBranches {
		tree.Forks, cut = tree.Forks[:maxBranches], true
	}
	if tree.Indexes, err = p.branchIndexes(ctx, tree.Ancestors, tree.Forks); err != nil {
		return view.Tree{}, err
	}
	return view.Tree{Branches: view.Branches(tree), Cut: cut || tree.Cut()}, p.same(ctx, &s)
}

// branchIndexes returns the indexes of the first maxBranchIndexes sessions. They
// have only the active invocations that began in the session itself.
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
			t, err := p.timeline(ctx, new(folded), s) // not the kept entry: to wait for its lock could be a deadlock
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

// forks returns the descendants of a session, then those of its ancestors, nearest
// first. If there are more than maxBranches, it stops after that number.
func (p *Projections) forks(ctx context.Context, s *tapedeck.Session, ancestors []tapedeck.Session) ([]tapedeck.Session, error) {
	var out []tapedeck.Session
	queue, seen := []string{s.ID}, map[string]bool{s.ID: true}
	for _, a := range ancestors {
		seen[a.ID] = true
	}
	for above := ancestors; len(queue) > 0 && len(out) <= maxBranches; queue = queue[1:] {
		for cursor := ""; ; {
			page, err := p.store.List(ctx, tapedeck.Filter{Parent: queue[0], Cursor: cursor, Limit: maxBranches})
			if err != nil {
				return nil, err
			}
			for _, s := range page.Sessions {
				if !seen[s.ID] {
					out, queue = append(out, s), append(queue, s.ID)
				}
			}
			if cursor = page.Next; cursor == "" || len(out) > maxBranches {
				break
			}
		}
		if len(queue) == 1 && len(above) > 0 {
			queue, above = append(queue, above[0].ID), above[1:]
		}
	}
	return out, nil
}
