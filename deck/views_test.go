package deck_test

import (
	"strconv"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// TestZeroQuery: a query that names no offset asks for the conversation as of now.
func TestZeroQuery(t *testing.T) {
	d := openAt(t, "", deck.Options{InMemory: true})
	s, err := d.Create(t.Context(), api.NewSession{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m1", payload.RoleUser, "hello")})); err != nil {
		t.Fatal(err)
	}
	for want, q := range map[int64]view.Query{2: {}, 1: {At: new(int64(1))}, 0: {At: new(int64(0))}} {
		if got, err := s.Snapshot(t.Context(), q); err != nil || got.At != want {
			t.Errorf("as of %d: got %d, %v", want, got.At, err)
		}
	}
}

// TestEmptyID: a task for a session without an id creates none.
func TestEmptyID(t *testing.T) {
	d := openAt(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{{Name: "faulty", Runner: tapedeck.RunnerFunc(breaks)}}})
	if _, err := d.Session("").Run(t.Context(), "go"); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("got %v", err)
	}
	if list, err := d.Sessions(t.Context(), tapedeck.Filter{}); err != nil || len(list.Sessions) > 0 {
		t.Errorf("there are %d sessions, %v", len(list.Sessions), err)
	}
}

// TestBranchesAreCut: a tree that is larger than its limits says so.
func TestBranchesAreCut(t *testing.T) {
	d := openAt(t, "", deck.Options{InMemory: true})
	s, err := d.Create(t.Context(), api.NewSession{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1001 {
		if _, err := s.Fork(t.Context(), api.Fork{ID: "fork-" + strconv.Itoa(n)}); err != nil {
			t.Fatal(err)
		}
		if n != 0 && n != 1000 {
			continue
		}
		if tree, err := s.Branches(t.Context(), deck.Head); err != nil || tree.Cut != (n == 1000) {
			t.Errorf("%d forks: cut is %t, %v", n+1, tree.Cut, err)
		}
	}
}
