package projection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// branchOff makes a fork of a deck with a turn of its own.
func (d *deck) branchOff(id string, at int64) *deck {
	fork := *d
	fork.id = id
	data := json.RawMessage(fmt.Sprintf(`{"parent":%q,"at":%d}`, d.id, at))
	fork.create(tapedeck.Spec{ID: id, Parent: d.id, ForkAt: &at, Events: []tapedeck.Event{{Type: tapedeck.SessionForked, Data: data}}})
	fork.head = at + 1
	fork.run("")
	return &fork
}

// From any session of a tree, Branches returns all sessions once. Each has the
// invocations that began in it, without the inherited ones.
func TestBranchesOfAFamily(t *testing.T) {
	d := newDeck(t)
	for range 5 {
		d.run("")
	}
	p := projection.New(options(d))
	left := d.branchOff("left", 13)
	right := d.branchOff("right", 13)
	child := left.branchOff("child", left.head)
	left.run("")
	left.jump(left.head-8, "") // reverted invocations do not count
	for _, asked := range []*deck{d, left, right, child} {
		tree, err := p.Branches(context.Background(), asked.id, -1)
		if err != nil {
			t.Fatal(err)
		}
		got, current := map[string]string{}, ""
		for _, b := range tree.Branches {
			if b.Kind == view.BranchRewound {
				continue
			}
			own := 0
			for _, v := range b.Invocations {
				if v.First >= b.ForkAt && v.Last >= v.First {
					own++
				}
			}
			if got[b.ID] != "" {
				t.Errorf("%s is there twice", b.ID)
			}
			got[b.ID] = fmt.Sprintf("of %q, %d of its own", b.Parent, own)
			if b.Current {
				current = b.ID
			}
		}
		want := map[string]string{
			d.id: `of "", 5 of its own`, "left": fmt.Sprintf("of %q, 1 of its own", d.id),
			"right": fmt.Sprintf("of %q, 1 of its own", d.id), "child": `of "left", 1 of its own`,
		}
		if diff := cmp.Diff(want, got); diff != "" || current != asked.id {
			t.Errorf("asked for %s, is at %s: %s", asked.id, current, diff)
		}
	}
}

// The answer says that the tree is larger than a limit, and only then.
func TestLargeTreesAreCut(t *testing.T) {
	const limit = 1000
	d := newDeck(t)
	p := projection.New(options(d))
	check := func(session string, branches int, cut bool) {
		t.Helper()
		tree, err := p.Branches(context.Background(), session, -1)
		if err != nil || len(tree.Branches) != branches || tree.Cut != cut {
			t.Fatalf("%d branches, cut: %t, %v; want %d, %t", len(tree.Branches), tree.Cut, err, branches, cut)
		}
	}
	fork := func(parent, id string) {
		at := int64(1)
		data := json.RawMessage(fmt.Sprintf(`{"parent":%q,"at":1}`, parent))
		d.create(tapedeck.Spec{ID: id, Parent: parent, ForkAt: &at, Events: []tapedeck.Event{{Type: tapedeck.SessionForked, Data: data}}})
	}
	for n := range limit {
		fork(d.id, fmt.Sprintf("fork%d", n))
	}
	check(d.id, 1+limit, false)
	fork("fork7", "more")
	check(d.id, 1+limit, true)

	d = newDeck(t)
	p = projection.New(options(d))
	youngest := d.id
	for n := range limit + 1 {
		id := fmt.Sprintf("child%d", n)
		fork(youngest, id)
		youngest = id
	}
	check("child999", limit+2, false) // and its fork
	check(youngest, 1+limit, true)

	d = newDeck(t)
	p = projection.New(options(d))
	for range limit {
		d.run("")
		d.jump(1, "")
	}
	check(d.id, 1+limit, false)
	d.run("")
	d.jump(1, "")
	check(d.id, 1+limit, true)
}
