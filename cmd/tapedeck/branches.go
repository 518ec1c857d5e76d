package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

func newBranches(e *env) *cobra.Command {
	return viewCommand(e, "branches", "Show the tree of forks and reverted events",
		`Branches shows the tree that a session is part of: the session that it was forked
from, its forks, and the events that were reverted in it, each with the offset where
it branches off. To restore reverted events, pass their marker to tapedeck undo.
The last line says so if the tree is too large to be shown whole.`,
		func(ctx context.Context, c *connection, session string, at int64) (api.Branches, error) {
			return c.Branches(ctx, session, at)
		}, printBranches)
}

func printBranches(p terminal.Pen, v api.Branches) error {
	children, known := map[string][]int{}, map[string]bool{}
	for i := range v.Branches {
		known[v.Branches[i].ID] = true
	}
	var roots []int
	for i := range v.Branches {
		if b := &v.Branches[i]; known[b.Parent] && b.Parent != b.ID {
			children[b.Parent] = append(children[b.Parent], i)
		} else {
			roots = append(roots, i)
		}
	}
	var show func(is []int, depth int) error
	show = func(is []int, depth int) error {
		for _, i := range is {
			b := &v.Branches[i]
			if err := p.Printf("%s%s\n", strings.Repeat("  ", depth), branchLine(p, b)); err != nil {
				return err
			}
			if err := show(children[b.ID], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := show(roots, 0); err != nil || !v.Cut {
		return err
	}
	return p.Printf("%s\n", p.Paint(terminal.Dim, "… the tree is larger; a part of it is left out"))
}

func branchLine(p terminal.Pen, b *view.Branch) string {
	name := b.ID
	if b.Current {
		name = p.Paint(terminal.Bold, name)
	}
	kind := b.Kind
	switch b.Verb {
	case tapedeck.SessionCleared:
		kind = "cleared"
	case tapedeck.SessionOverwritten:
		kind = "overwritten"
	}
	line := fmt.Sprintf("%s  %s", name, p.Paint(terminal.Dim, kind))
	if b.Parent != "" {
		line += p.Paint(terminal.Dim, fmt.Sprintf(" at %d", b.ForkAt))
	}
	if b.Kind == view.BranchRewound {
		line += p.Paint(terminal.Dim, fmt.Sprintf(", %d to %d", b.From, b.To))
	}
	if b.Title != "" {
		line += "  " + terminal.Brief(b.Title, 50)
	}
	return line
}
