package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck/api"
)

// Answer answers what an agent has asked. With an offset it is refused if another
// question than the one at that offset is open under the id.
func (c *Client) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	var out api.Answered
	path := sessionPath(a.Session, "permissions", url.PathEscape(a.Permission))
	in := map[string]any{"option": a.Option}
	if a.Offset != nil {
		in["offset"] = *a.Offset
	}
	err := c.call(ctx, http.MethodPost, path, nil, in, &out)
	return out, err
}

// Permissions returns what agents have asked in a session, as in its snapshot:
// an array of what is open, and of the newest of what is not, oldest first.
func (c *Client) Permissions(ctx context.Context, session string) (json.RawMessage, error) {
	var s struct {
		Permissions json.RawMessage `json:"permissions"`
	}
	err := c.call(ctx, http.MethodGet, sessionPath(session, "snapshot"), nil, nil, &s)
	if s.Permissions == nil {
		s.Permissions = json.RawMessage("[]")
	}
	return s.Permissions, err
}
