package client

import (
	"context"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
)

// Inbox returns a page of the questions that wait for people, newest first, over all
// sessions that the client may read. An empty cursor is the first page; limit 0 is 100.
func (c *Client) Inbox(ctx context.Context, cursor string, limit int) (api.Inbox, error) {
	q := url.Values{}
	setString(q, "cursor", cursor)
	setInt(q, "limit", int64(limit))
	return get[api.Inbox](ctx, c, "/api/v1/inbox", q)
}
