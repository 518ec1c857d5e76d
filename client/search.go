package client

import (
	"context"
	"net/url"
	"time"

	"github.com/tapedeck/tapedeck/search"
)

// Search finds text, the best matches first. [search.Result.Next] is the cursor of
// the next page.
func (c *Client) Search(ctx context.Context, s search.Query) (search.Result, error) {
	q := url.Values{}
	for name, v := range map[string]string{
		"q": s.Text, "session": s.Session, "kind": s.Kind, "role": s.Role, "status": string(s.Status),
		"agent": s.Agent, "owner": s.Owner, "cursor": s.Cursor,
	} {
		setString(q, name, v)
	}
	setInt(q, "limit", int64(s.Limit))
	for name, t := range map[string]time.Time{"from": s.From, "to": s.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return get[search.Result](ctx, c, "/api/v1/search", q)
}
