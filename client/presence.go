package client

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
)

// Presence says where somebody is, and returns who is there.
func (c *Client) Presence(ctx context.Context, n tapedeck.PresenceNote) ([]tapedeck.Presence, error) {
	in := map[string]any{"action": n.Action, "user": n.User}
	if n.Cursor != nil {
		in["cursor"] = n.Cursor
	}
	var out struct {
		Present []tapedeck.Presence `json:"present"`
	}
	err := c.call(ctx, http.MethodPost, sessionPath(n.Session, "presence"), nil, in, &out)
	return out.Present, err
}
