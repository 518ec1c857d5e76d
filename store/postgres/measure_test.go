package postgres_test

import (
	"testing"

	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// TestGroupsAreMeasured: the store says what each group costs, and figures of itself.
func TestGroupsAreMeasured(t *testing.T) {
	groups := make(chan store.Group, 100)
	s := open(t, postgres.Options{URL: place(t), Measure: func(g store.Group) { groups <- g }})
	create(t, s, "a")
	g := <-groups
	if g.Requests != 1 || g.Failed || g.Commit <= 0 || g.Took < g.Commit {
		t.Errorf("%+v", g)
	}
	if f := s.Figures(); f.Hot != 1 || f.Queue != 0 {
		t.Errorf("%+v", f)
	}
}
