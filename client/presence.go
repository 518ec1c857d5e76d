package client

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// Presence says where somebody is, and returns who is there.
func (c *Client) Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error) {
	in := map[string]any{"action": n.Action, "user": n.User}
	if n.Cursor != nil {
		in["cursor"] = n.Cursor
	}
	var out struct {
		Present []payload.Presence `json:"present"`
	}
	err := c.call(ctx, http.MethodPost, sessionPath(n.Session, "presence"), nil, in, &out)
	return out.Present, err
}
