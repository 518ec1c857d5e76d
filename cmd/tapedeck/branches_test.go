package main

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// A tree that is not whole says so, and only that.
func TestBranchesOfALargeTree(t *testing.T) {
	for _, cut := range []bool{false, true} {
		var out strings.Builder
		v := api.Branches{Branches: []view.Branch{{ID: "trip"}}, Cut: cut}
		if err := printBranches(terminal.Pen{W: &out, Width: 80}, v); err != nil || strings.Contains(out.String(), "a part of it is left out") != cut {
			t.Errorf("cut: %t, %v, printed %q", cut, err, &out)
		}
	}
}
