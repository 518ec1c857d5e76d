package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tapedeck/tapedeck/store"
)

// Workflows keeps the diagrams of workflows, in the database of the store. The suite in
// store/storetest is its contract.
type Workflows struct{ store *Store }

// Workflows returns the diagrams of the store.
func (s *Store) Workflows() *Workflows { return &Workflows{s} }

const (
	workflowColumns = `name, digest, title, added, size`

	sqlWorkflows        = `SELECT ` + workflowColumns + ` FROM workflows w WHERE number = (SELECT max(number) FROM workflows WHERE name = w.name) ORDER BY name`
	sqlWorkflowVersions = `SELECT ` + workflowColumns + ` FROM workflows WHERE name = $1 ORDER BY number DESC`
	sqlWorkflow         = `SELECT ` + workflowColumns + `, diagram FROM workflows WHERE name = $1 AND (digest = $2 OR $2 = '') ORDER BY number DESC LIMIT 1`
	sqlIsCurrent        = `SELECT count(*) FROM workflows WHERE name = $1 AND digest = $2 AND number = (SELECT max(number) FROM workflows WHERE name = $1)`
	sqlPutWorkflow      = `INSERT INTO workflows (name, digest, number, title, added, size, diagram)
		SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6 FROM workflows WHERE name = $1
		ON CONFLICT (name, digest) DO UPDATE SET number = excluded.number, title = excluded.title, added = excluded.added`
	sqlTrimWorkflow = `DELETE FROM workflows WHERE name = $1 AND number NOT IN (SELECT number FROM workflows WHERE name = $1 ORDER BY number DESC LIMIT $2)`
	sqlHasWorkflow  = `SELECT count(*) FROM workflows WHERE name = $1`
	sqlDropWorkflow = `DELETE FROM workflows WHERE name = $1`
)

// List returns the current version of every name, by the names.
func (x *Workflows) List(ctx context.Context) ([]store.Workflow, error) {
	return x.list(ctx, sqlWorkflows)
}

// Versions returns the versions of a name, the current one first; none if the name is not
// stored.
func (x *Workflows) Versions(ctx context.Context, name string) ([]store.Workflow, error) {
	return x.list(ctx, sqlWorkflowVersions, stored(name))
}

func (x *Workflows) list(ctx context.Context, query string, args ...any) (out []store.Workflow, err error) {
	err = x.store.read(ctx, func(r pgx.Rows) error {
		w, err := scanWorkflow(r)
		out = append(out, w)
		return err
	}, query, args...)
	return out, err
}

func scanWorkflow(r pgx.Rows, more ...any) (w store.Workflow, err error) {
	var added int64
	err = r.Scan(append([]any{&w.Name, &w.Digest, &w.Title, &added, &w.Size}, more...)...)
	w.Name, w.Digest, w.Title = original(w.Name), original(w.Digest), original(w.Title)
	w.Added = time.UnixMilli(added).UTC()
	return w, err
}

// Get returns a version with its diagram; the digest "" stands for the current version. It
// is [tapedeck.NotFound] if there is none.
func (x *Workflows) Get(ctx context.Context, name, digest string) (w store.Workflow, diagram []byte, err error) {
	found := false
	err = x.store.read(ctx, func(r pgx.Rows) (err error) {
		found = true
		w, err = scanWorkflow(r, &diagram)
		return err
	}, sqlWorkflow, stored(name), stored(digest))
	if err == nil && !found {
		err = store.NoWorkflow(name, digest)
	}
	if err == nil {
		err = w.Check(diagram)
	}
	return w, diagram, err
}

// Put makes a diagram the current version of its name, and removes the oldest versions
// beyond keep. Nothing changes if it is the current version already.
func (x *Workflows) Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error {
	return x.store.submit(ctx, &putWorkflow{w, diagram, keep}, len(diagram)+rowSize)
}

// Delete removes all versions of a name. It is [tapedeck.NotFound] if there is none.
func (x *Workflows) Delete(ctx context.Context, name string) error {
	return x.store.submit(ctx, dropWorkflow(name), rowSize)
}

// A putWorkflow is the task of a Put.
type putWorkflow struct {
	store.Workflow
	diagram []byte
	keep    int
}

func (t *putWorkflow) do(w *writer) error {
	name, digest := stored(t.Name), stored(t.Digest)
	switch current, err := w.integer(sqlIsCurrent, name, digest); {
	case err != nil:
		return err
	case current != 0:
		return nil
	}
	diagram := t.diagram
	if diagram == nil {
		diagram = []byte{} // nil is null
	}
	w.exec(sqlPutWorkflow, name, digest, stored(t.Title), t.Added.UnixMilli(), int64(len(diagram)), diagram)
	w.exec(sqlTrimWorkflow, name, int64(t.keep))
	return nil
}

// A dropWorkflow is the task of a Delete.
type dropWorkflow string

func (t dropWorkflow) do(w *writer) error {
	switch has, err := w.integer(sqlHasWorkflow, stored(string(t))); {
	case err != nil:
		return err
	case has == 0:
		return store.NoWorkflow(string(t), "")
	}
	w.exec(sqlDropWorkflow, stored(string(t)))
	return nil
}
