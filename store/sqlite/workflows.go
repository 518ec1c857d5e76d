package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

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
	sqlWorkflowVersions = `SELECT ` + workflowColumns + ` FROM workflows WHERE name = ? ORDER BY number DESC`
	sqlWorkflow         = `SELECT ` + workflowColumns + `, diagram FROM workflows WHERE name = ?1 AND (digest = ?2 OR ?2 = '') ORDER BY number DESC LIMIT 1`
	sqlIsCurrent        = `SELECT EXISTS (SELECT 1 FROM workflows WHERE name = ?1 AND digest = ?2 AND number = (SELECT max(number) FROM workflows WHERE name = ?1))`
	sqlPutWorkflow      = `INSERT INTO workflows (name, digest, number, title, added, size, diagram)
		SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3, ?4, ?5, ?6 FROM workflows WHERE name = ?1
		ON CONFLICT (name, digest) DO UPDATE SET number = excluded.number, title = excluded.title, added = excluded.added`
	sqlTrimWorkflow = `DELETE FROM workflows WHERE name = ?1 AND number NOT IN (SELECT number FROM workflows WHERE name = ?1 ORDER BY number DESC LIMIT ?2)`
	sqlHasWorkflow  = `SELECT EXISTS (SELECT 1 FROM workflows WHERE name = ?)`
	sqlDropWorkflow = `DELETE FROM workflows WHERE name = ?`
)

// List returns the current version of every name, by the names.
func (x *Workflows) List(ctx context.Context) ([]store.Workflow, error) {
	return x.list(ctx, sqlWorkflows)
}

// Versions returns the versions of a name, the current one first; none if the name is not
// stored.
func (x *Workflows) Versions(ctx context.Context, name string) ([]store.Workflow, error) {
	return x.list(ctx, sqlWorkflowVersions, name)
}

func (x *Workflows) list(ctx context.Context, query string, args ...driver.Value) (out []store.Workflow, err error) {
	err = x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			out = append(out, workflowOf(row))
			return ctx.Err()
		}, query, args...)
	})
	return out, err
}

func workflowOf(row []driver.Value) store.Workflow {
	return store.Workflow{
		Name: text(row[0]), Digest: text(row[1]), Title: text(row[2]), Added: time.UnixMilli(integer(row[3])).UTC(), Size: integer(row[4]),
	}
}

// Get returns a version with its diagram; the digest "" stands for the current version. It
// is [tapedeck.NotFound] if there is none.
func (x *Workflows) Get(ctx context.Context, name, digest string) (w store.Workflow, diagram []byte, err error) {
	found := false
	err = x.store.read(ctx, func(c *conn) error {
		return c.query(func(row []driver.Value) error {
			w, found = workflowOf(row), true
			diagram, _ = row[5].([]byte)
			return nil
		}, sqlWorkflow, name, digest)
	})
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
	switch current, err := w.conn.number(sqlIsCurrent, t.Name, t.Digest); {
	case err != nil:
		return err
	case current != 0:
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.conn.exec(sqlPutWorkflow, t.Name, t.Digest, t.Title, t.Added.UnixMilli(), int64(len(t.diagram)), t.diagram); err != nil {
		return err
	}
	return w.conn.exec(sqlTrimWorkflow, t.Name, int64(t.keep))
}

// A dropWorkflow is the task of a Delete.
type dropWorkflow string

func (t dropWorkflow) do(w *writer) error {
	switch has, err := w.conn.number(sqlHasWorkflow, string(t)); {
	case err != nil:
		return err
	case has == 0:
		return store.NoWorkflow(string(t), "")
	}
	if err := w.begin(); err != nil {
		return err
	}
	return w.conn.exec(sqlDropWorkflow, string(t))
}
