package guard

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
)

// Workflows keeps diagrams of workflows. They belong to the server, and to no session.
type Workflows interface {
	List(ctx context.Context) ([]api.DiagramVersion, error)
	Get(ctx context.Context, name, version string) (api.Diagram, error)
	Put(ctx context.Context, n api.NewWorkflow) (api.Diagram, error)
	Delete(ctx context.Context, name string) error
	Check(ctx context.Context, c api.CheckWorkflow) (api.Diagram, error)
	Prepare(ctx context.Context, r api.RunWorkflow) (api.Task, error)
}

// Library is a [Workflows]. An admin writes it. Everybody else reads it, but not with a token
// of one session.
type Library struct {
	g         *Guard
	workflows Workflows
}

// looks returns an error unless the identity of a context may see what belongs to the server.
func looks(ctx context.Context) error {
	i, err := who(ctx)
	if err == nil && i.Limits.Session != "" {
		err = ofOneSession()
	}
	return err
}

// governs returns an error unless the identity of a context may change what belongs to the
// server.
func governs(ctx context.Context) error {
	i, err := who(ctx)
	switch {
	case err != nil:
		return err
	case i.Role != access.Admin || !i.IsUnlimited():
		return tapedeck.Errorf(tapedeck.Forbidden, "this token may not change what is for all users; an admin may")
	}
	return nil
}

// List lists the workflows.
func (l *Library) List(ctx context.Context) ([]api.DiagramVersion, error) {
	if err := looks(ctx); err != nil {
		return nil, err
	}
	return l.workflows.List(ctx)
}

// Get returns a workflow.
func (l *Library) Get(ctx context.Context, name, version string) (api.Diagram, error) {
	if err := looks(ctx); err != nil {
		return api.Diagram{}, err
	}
	return l.workflows.Get(ctx, name, version)
}

// Put stores a workflow.
func (l *Library) Put(ctx context.Context, n api.NewWorkflow) (api.Diagram, error) {
	if err := governs(ctx); err != nil {
		return api.Diagram{}, err
	}
	return l.workflows.Put(ctx, n)
}

// Delete deletes a workflow.
func (l *Library) Delete(ctx context.Context, name string) error {
	if err := governs(ctx); err != nil {
		return err
	}
	return l.workflows.Delete(ctx, name)
}

// Check tells what is wrong with a diagram.
func (l *Library) Check(ctx context.Context, c api.CheckWorkflow) (api.Diagram, error) {
	if err := looks(ctx); err != nil {
		return api.Diagram{}, err
	}
	return l.workflows.Check(ctx, c)
}

// Run starts a workflow for everybody who may give an agent a task there.
func (l *Library) Run(ctx context.Context, r api.RunWorkflow) (api.Started, error) {
	var err error
	if r.Session == "" {
		_, err = creates(ctx)
	} else {
		ctx, _, err = l.g.allow(ctx, r.Session, access.Write)
	}
	if err == nil && r.Name != "" {
		err = looks(ctx)
	}
	if err != nil {
		return api.Started{}, err
	}
	t, err := l.workflows.Prepare(ctx, r)
	if err != nil {
		return api.Started{}, err
	}
	return l.g.Verbs.Start(ctx, t)
}
