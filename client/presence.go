package client

import (
	"context"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// Presence reports where a user is, and returns all users in the session.
func (c *Client) Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error) {
	out, err := post[api.Present](ctx, c, sessionPath(n.Session, "presence"), n)
	return out.Present, err
}

// Present returns all users in a session, in the order in which they joined.
func (c *Client) Present(ctx context.Context, session string) ([]payload.Presence, error) {
	out, err := get[api.Present](ctx, c, sessionPath(session, "presence"), nil)
	return out.Present, err
}
