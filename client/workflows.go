package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
)

func workflowPath(name string) string { return "/api/v1/workflows/" + url.PathEscape(name) }

// Workflows returns the current version of every stored workflow, by name.
func (c *Client) Workflows(ctx context.Context) ([]api.DiagramVersion, error) {
	var out api.Workflows
	err := c.call(ctx, http.MethodGet, "/api/v1/workflows", nil, nil, &out)
	return out.Workflows, err
}

// Workflow returns a stored workflow with its diagram. The version is a digest, or "" for
// the current version.
func (c *Client) Workflow(ctx context.Context, name, version string) (api.Diagram, error) {
	var out api.Diagram
	query := url.Values{}
	if version != "" {
		query.Set("version", version)
	}
	err := c.call(ctx, http.MethodGet, workflowPath(name), query, nil, &out)
	return out, err
}

// PutWorkflow stores a diagram as the current version of a workflow.
func (c *Client) PutWorkflow(ctx context.Context, n api.NewWorkflow) (api.Diagram, error) {
	var out api.Diagram
	err := c.call(ctx, http.MethodPut, workflowPath(n.Name), nil, n, &out)
	return out, err
}

// DeleteWorkflow deletes a stored workflow with all its versions. Its runs continue.
func (c *Client) DeleteWorkflow(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, workflowPath(name), nil, nil, nil)
}

// CheckWorkflow says what a diagram does and what a run of it needs. If the diagram cannot
// run, the error has all its problems.
func (c *Client) CheckWorkflow(ctx context.Context, k api.CheckWorkflow) (api.Diagram, error) {
	return post[api.Diagram](ctx, c, "/api/v1/workflows/check", k)
}

// RunWorkflow starts a workflow. If something is wrong with the request, the error has all
// problems, and nothing is started.
func (c *Client) RunWorkflow(ctx context.Context, r api.RunWorkflow) (api.Started, error) {
	return post[api.Started](ctx, c, "/api/v1/workflows/run", r)
}

// SessionWorkflow returns the workflow of a session as of an offset, negative for the head.
// The thread "" is the main one if that has a workflow, and otherwise the first that has one.
func (c *Client) SessionWorkflow(ctx context.Context, session, thread string, at int64) (api.SessionWorkflow, error) {
	q := atOffset(at)
	setString(q, "thread", thread)
	return get[api.SessionWorkflow](ctx, c, sessionPath(session, "workflow"), q)
}

// SendMessage sends a message to the workflow that runs in a session.
func (c *Client) SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error) {
	return post[api.MessageSent](ctx, c, sessionPath(m.Session, "messages"), m)
}
