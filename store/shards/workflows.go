package shards

import (
	"cmp"
	"context"
	"slices"

	"github.com/tapedeck/tapedeck/store"
)

// Workflows keeps the diagrams of workflows, each in the shard of its name. The suite in
// store/storetest is its contract.
type Workflows struct{ store *Store }

// Workflows returns the diagrams of the store.
func (s *Store) Workflows() *Workflows { return &Workflows{s} }

// of returns the shard of a name.
func (x *Workflows) of(name string) *Shard {
	return &x.store.shards[Home("workflow/"+name, len(x.store.shards))]
}

// List returns the current version of every name, by the names.
func (x *Workflows) List(ctx context.Context) ([]store.Workflow, error) {
	s := x.store
	found := make([][]store.Workflow, len(s.shards))
	err := s.every(ctx, "the list would not have all workflows", func(i int) (err error) {
		found[i], err = s.shards[i].Workflows.List(ctx)
		return err
	})
	out := slices.Concat(found...)
	slices.SortFunc(out, func(a, b store.Workflow) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// Versions returns the versions of a name, the current one first.
func (x *Workflows) Versions(ctx context.Context, name string) ([]store.Workflow, error) {
	return x.of(name).Workflows.Versions(ctx, name)
}

// Get returns a version with its diagram.
func (x *Workflows) Get(ctx context.Context, name, digest string) (store.Workflow, []byte, error) {
	return x.of(name).Workflows.Get(ctx, name, digest)
}

// Put makes a diagram the current version of its name.
func (x *Workflows) Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error {
	return x.of(w.Name).Workflows.Put(ctx, w, diagram, keep)
}

// Delete removes all versions of a name.
func (x *Workflows) Delete(ctx context.Context, name string) error {
	return x.of(name).Workflows.Delete(ctx, name)
}
