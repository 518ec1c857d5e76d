package client

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Run gives a task to an agent, in the task's session or, if it names none, in
// a new one.
func (c *Client) Run(ctx context.Context, t api.Task) (api.Started, error) {
	path := "/api/v1/sessions/run"
	if t.Session != "" {
		path, t.Title = sessionPath(t.Session, "task"), "" // the session has its title
	}
	return post[api.Started](ctx, c, path, t)
}

// Cancel cancels a run of a session; the empty invocation means the only open one.
func (c *Client) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	return post[api.Cancelled](ctx, c, sessionPath(session, "cancel"), api.Cancel{Invocation: invocation})
}

// Renew says that the program which writes a run is alive, so that the server does not end
// the run. [Client.KeepAlive] does it until the run ends.
func (c *Client) Renew(ctx context.Context, r api.Renewal) (api.Renewed, error) {
	return post[api.Renewed](ctx, c, sessionPath(r.Session, "renew"), r)
}

// Resume asks the agent of a thread to continue its newest run, which stopped
// before its end.
func (c *Client) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	return post[api.Started](ctx, c, sessionPath(r.Session, "resume"), r)
}

// Rewind takes a session, or a thread of it, back to what it was before an event.
// The server first cancels the runs in its scope.
func (c *Client) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	return post[api.Rewound](ctx, c, sessionPath(r.Session, "rewind"), r)
}

// Undo reverts a rewind, a clear, an overwrite or an undo.
func (c *Client) Undo(ctx context.Context, u api.Undo) (api.Rewound, error) {
	return post[api.Rewound](ctx, c, sessionPath(u.Session, "undo"), u)
}

// Overwrite reverts the events from an offset on. The following events replace
// them.
func (c *Client) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	return post[api.Rewound](ctx, c, sessionPath(o.Session, "overwrite"), o)
}

// Clear reverts all events of a session, or of a thread of it.
func (c *Client) Clear(ctx context.Context, r api.Clear) (api.Rewound, error) {
	return post[api.Rewound](ctx, c, sessionPath(r.Session, "clear"), r)
}

// Fork creates a session that shares the events of another one.
func (c *Client) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	return post[tapedeck.Session](ctx, c, sessionPath(f.Parent, "fork"), f)
}

// Erase removes the payloads of events for good and returns the receipt.
func (c *Client) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	return post[api.Erased](ctx, c, sessionPath(e.Session, "erase"), e)
}

// CloseSession closes a session: it accepts no more events.
func (c *Client) CloseSession(ctx context.Context, session string) (tapedeck.Session, error) {
	return post[tapedeck.Session](ctx, c, sessionPath(session, "close"), nil)
}

// Rename changes what people see of a session.
func (c *Client) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	var out tapedeck.Session
	err := c.call(ctx, http.MethodPatch, sessionPath(r.Session), nil, r, &out)
	return out, err
}
