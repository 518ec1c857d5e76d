package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck/store"
)

// Workflows keeps the diagrams of workflows. The suite in store/storetest is its contract.
type Workflows struct{ store *Store }

// Workflows returns the diagrams of the store.
func (m *Store) Workflows() *Workflows { return &Workflows{m} }

// A storedWorkflow is a version of a name.
type storedWorkflow struct {
	store.Workflow
	diagram []byte
}

// List returns the current version of every name, by the names.
func (x *Workflows) List(ctx context.Context) (out []store.Workflow, err error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, versions := range x.store.workflows {
		out = append(out, versions[0].Workflow)
	}
	slices.SortFunc(out, func(a, b store.Workflow) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Versions returns the versions of a name, the current one first; none if the name is not
// stored.
func (x *Workflows) Versions(ctx context.Context, name string) (out []store.Workflow, err error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, v := range x.store.workflows[name] {
		out = append(out, v.Workflow)
	}
	return out, nil
}

// Get returns a version with its diagram; the digest "" stands for the current version. It
// is [tapedeck.NotFound] if there is none.
func (x *Workflows) Get(ctx context.Context, name, digest string) (store.Workflow, []byte, error) {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return store.Workflow{}, nil, err
	}
	defer unlock()
	for _, v := range x.store.workflows[name] {
		if digest == "" || v.Digest == digest {
			return v.Workflow, slices.Clone(v.diagram), v.Check(v.diagram)
		}
	}
	return store.Workflow{}, nil, store.NoWorkflow(name, digest)
}

// Put makes a diagram the current version of its name, and removes the oldest versions
// beyond keep. Nothing changes if it is the current version already.
func (x *Workflows) Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	versions := x.store.workflows[w.Name]
	if len(versions) > 0 && versions[0].Digest == w.Digest {
		return nil
	}
	if err := x.store.commit(); err != nil {
		return err
	}
	w.Size, w.Added = int64(len(diagram)), w.Added.UTC().Truncate(time.Millisecond)
	others := slices.DeleteFunc(slices.Clone(versions), func(v storedWorkflow) bool { return v.Digest == w.Digest })
	versions = append([]storedWorkflow{{w, slices.Clone(diagram)}}, others...)
	x.store.workflows[w.Name] = versions[:min(len(versions), keep)]
	return nil
}

// Delete removes all versions of a name. It is [tapedeck.NotFound] if there is none.
func (x *Workflows) Delete(ctx context.Context, name string) error {
	unlock, err := x.store.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if x.store.workflows[name] == nil {
		return store.NoWorkflow(name, "")
	}
	if err := x.store.commit(); err != nil {
		return err
	}
	delete(x.store.workflows, name)
	return nil
}
