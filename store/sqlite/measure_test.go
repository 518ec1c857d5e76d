package sqlite_test

import (
	"errors"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestGroupsAreMeasured: the store says what each group costs, also if it fails, and
// figures of itself.
func TestGroupsAreMeasured(t *testing.T) {
	var groups []store.Group // the writer calls Measure before the append returns
	fails := false
	s := open(t, t.TempDir(), sqlite.Options{
		Measure: func(g store.Group) { groups = append(groups, g) },
		Commit: func(commit func() error) error {
			if fails {
				return errors.New("the disk is full")
			}
			return commit()
		},
	})
	create(t, s, "a")
	groups = nil
	add(t, s, "a", 1)
	if len(groups) != 1 || groups[0].Requests != 1 || groups[0].Failed || groups[0].Commit <= 0 || groups[0].Took < groups[0].Commit {
		t.Errorf("an append: %+v", groups)
	}
	groups = nil
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "nobody", Events: []tapedeck.Event{{Type: "x"}}}); err == nil {
		t.Fatal("appended to a session that does not exist")
	}
	if len(groups) != 1 || groups[0].Failed || groups[0].Commit != 0 {
		t.Errorf("a refused append: %+v", groups)
	}
	groups, fails = nil, true
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: []tapedeck.Event{{Type: "x"}}}); err == nil {
		t.Fatal("appended without a commit")
	}
	if len(groups) != 1 || !groups[0].Failed {
		t.Errorf("a failed append: %+v", groups)
	}
	fails = false
	add(t, s, "a", 1)
	if f := s.Figures(); f.Hot != 1 || f.LogBytes == 0 || f.DataBytes == 0 || f.Queue != 0 {
		t.Errorf("%+v", f)
	}
}
