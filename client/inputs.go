package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// Inputs returns the inputs of a thread, or of all threads if thread is "": those that
// wait, in the order in which they will run, and the newest of those that have ended.
func (c *Client) Inputs(ctx context.Context, session, thread string) ([]view.Input, error) {
	q := url.Values{}
	setString(q, "thread", thread)
	list, err := get[api.Inputs](ctx, c, sessionPath(session, "inputs"), q)
	return list.Inputs, err
}

// Withdraw withdraws an input that waits, and returns it.
func (c *Client) Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error) {
	var out view.Input
	q := url.Values{}
	setString(q, "actor", w.Actor)
	err := c.call(ctx, http.MethodDelete, sessionPath(w.Session, "inputs", url.PathEscape(w.Input)), q, nil, &out)
	return out, err
}

// Move puts an input that waits before another one, or at the end of the queue, and
// returns it.
func (c *Client) Move(ctx context.Context, m api.Move) (view.Input, error) {
	var out view.Input
	err := c.call(ctx, http.MethodPatch, sessionPath(m.Session, "inputs", url.PathEscape(m.Input)), nil, m, &out)
	return out, err
}

// Take gives an input that waits for an outside program to the open run of that program.
func (c *Client) Take(ctx context.Context, t api.Take) (api.Taken, error) {
	return post[api.Taken](ctx, c, sessionPath(t.Session, "inputs", url.PathEscape(t.Input), "take"), t)
}

// CancelAll is like [Client.Cancel], and withdraws the inputs that wait in the thread of
// the run. Without an invocation and without an open run it withdraws all that wait.
func (c *Client) CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	return post[api.Cancelled](ctx, c, sessionPath(session, "cancel"), api.Cancel{Invocation: invocation, All: true})
}
