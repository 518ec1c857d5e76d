package client

import (
	"context"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// Answer answers a permission that an agent asked for. With an offset, the answer
// is refused if the pending permission with this id is not the one at that offset.
func (c *Client) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	return post[api.Answered](ctx, c, sessionPath(a.Session, "permissions", url.PathEscape(a.Permission)), a)
}

// Permissions returns the permissions in a session, as in its snapshot: all pending
// ones and the newest of the others, oldest first.
func (c *Client) Permissions(ctx context.Context, session string) ([]view.Permission, error) {
	s, err := c.Snapshot(ctx, session, view.Query{})
	return s.Permissions, err
}
