package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

const tokensPath = "/api/v1/tokens"

// IssueToken makes a token of one session. It is for the owner of the session and for admins.
func (c *Client) IssueToken(ctx context.Context, n api.NewToken) (api.IssuedToken, error) {
	var out api.IssuedToken
	err := c.call(ctx, http.MethodPost, sessionPath(n.Session, "tokens"), nil, n, &out)
	return out, err
}

// Tokens lists the tokens of a session that have a name, newest first.
func (c *Client) Tokens(ctx context.Context, session string) (api.SessionTokens, error) {
	return get[api.SessionTokens](ctx, c, sessionPath(session, "tokens"), nil)
}

// RevokeToken revokes one token of a session. An empty id is [tapedeck.Invalid].
func (c *Client) RevokeToken(ctx context.Context, session, id string) error {
	if err := tapedeck.CheckID("the id of the token", id); err != nil {
		return err
	}
	return c.call(ctx, http.MethodDelete, sessionPath(session, "tokens")+"/"+url.PathEscape(id), nil, nil, nil)
}

// RevokeTokens revokes all tokens of a session that were made so far.
func (c *Client) RevokeTokens(ctx context.Context, session string) error {
	return c.call(ctx, http.MethodDelete, sessionPath(session, "tokens"), nil, nil, nil)
}

// IssuedTokens lists the tokens of all sessions, newest first: those that have a name, and those
// that were used since the server has started. With a subject, only those that it issued. It
// is for admins.
func (c *Client) IssuedTokens(ctx context.Context, by string) (api.SessionTokens, error) {
	q := url.Values{}
	setString(q, "issued_by", by)
	return get[api.SessionTokens](ctx, c, tokensPath, q)
}

// RevokeIssuedTokens revokes all tokens of sessions that a subject issued so far. It is for admins.
func (c *Client) RevokeIssuedTokens(ctx context.Context, by string) error {
	return c.call(ctx, http.MethodDelete, tokensPath, url.Values{"issued_by": {by}}, nil, nil)
}
