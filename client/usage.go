package client

import (
	"context"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
)

// A UsageQuery says what of the usage is wanted; empty members do not limit it.
type UsageQuery struct {
	From, To string // the first and the last day, in UTC, such as 2026-01-31
	Agent    string
	Owner    string // of the sessions
}

// Usage returns what the ended runs used, of all sessions that the client may read.
func (c *Client) Usage(ctx context.Context, u UsageQuery) (api.Usage, error) {
	q := url.Values{}
	setString(q, "from", u.From)
	setString(q, "to", u.To)
	setString(q, "agent", u.Agent)
	setString(q, "owner", u.Owner)
	return get[api.Usage](ctx, c, "/api/v1/usage", q)
}
