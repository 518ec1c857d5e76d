package view_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func TestBranchFixtures(t *testing.T) {
	testFixtures(t, "branches", func(t *testing.T, f viewFixture, events []tapedeck.Event) any {
		session := func(raw json.RawMessage) (s tapedeck.Session) {
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		family := view.BranchInput{Session: session(*f.Session), At: int64(len(events)), Jumps: events, Index: *index(events)}
		for _, raw := range f.Forks {
			family.Forks = append(family.Forks, session(raw))
		}
		for _, raw := range f.Parents {
			family.Ancestors = append(family.Ancestors, session(raw))
		}
		return view.Branches(family)
	})
}

// TestEveryEventIsInOneBranch reverts and restores events at random. Every
// event except the jumps must be in exactly one branch of its session.
func TestEveryEventIsInOneBranch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 60).Draw(t, "events")
		var jumps []tapedeck.Event
		isJump := map[int64]bool{}
		for o := range n {
			if o > 0 && rapid.IntRange(0, 4).Draw(t, "jump") == 0 {
				data, _ := json.Marshal(map[string]any{"marker": rapid.StringMatching(`m[0-9]{6}`).Draw(t, "marker"), "toOffset": rapid.Int64Range(0, o).Draw(t, "to")})
				jumps = append(jumps, tapedeck.Event{Offset: o, Type: tapedeck.SessionRewound, Channel: tapedeck.ChannelSession, Data: data})
				isJump[o] = true
			}
		}
		tree := view.Branches(view.BranchInput{Session: tapedeck.Session{ID: "s", Head: n}, At: n, Jumps: jumps})
		in := map[int64]int{}
		ids := map[string]bool{}
		for _, b := range tree {
			ids[b.ID] = true
			for _, r := range b.Ranges {
				for o := r.From; o < r.To; o++ {
					in[o]++
				}
			}
		}
		for o := range n {
			if want := 1; !isJump[o] && in[o] != want {
				t.Fatalf("offset %d is in %d branches of %+v", o, in[o], tree)
			}
		}
		for _, b := range tree {
			if b.Parent != "" && (!ids[b.Parent] || b.Parent == b.ID) {
				t.Fatalf("the parent of %s is %s", b.ID, b.Parent)
			}
		}
	})
}
