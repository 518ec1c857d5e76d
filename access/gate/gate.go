// Package gate reads who sends a request: from its header, from the cookie of the screen,
// or, for streams of a browser, from a parameter.
package gate

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// A Verifier knows one kind of token.
type Verifier interface {
	// Verify returns the identity of a token: nil without an error for a token of another
	// kind, and [tapedeck.Unauthorized] for one that is not valid.
	Verify(ctx context.Context, token string) (*access.Identity, error)
}

// A Keeper is a [Verifier] that knows which of its tokens are still valid. What was made with
// one of them, such as a share link, ends with it.
type Keeper interface {
	// Kept returns a context that is done when a token is no longer kept, by its name in the
	// identity; nil if it is not kept now. One that has expired may still be kept.
	Kept(token string) context.Context
}

// maxToken is the longest token, in bytes.
const maxToken = 8 << 10

// A Gate authenticates requests. Its methods may be called by several goroutines.
type Gate struct {
	// LoggedIn is called before a browser is logged in or out; its error is the answer. The
	// identity may be nil for a log-out. Nil for nothing. Set it before the first request.
	LoggedIn func(r *http.Request, who *access.Identity, in bool) error

	verifiers []Verifier
	log       *slog.Logger
	provider  Provider // nil: people log in with a token only
}

// New returns a gate that asks verifiers, one after the other.
func New(log *slog.Logger, verifiers ...Verifier) *Gate {
	return &Gate{verifiers: verifiers, log: log}
}

// parameter is the parameter of the query that has a token. An EventSource and a
// WebSocket of a browser cannot set headers.
const parameter = "token"

// Authenticate returns a request with the identity of its sender in its context, and
// without a token in its URL. Without a valid token it is [tapedeck.Unauthorized].
func (g *Gate) Authenticate(r *http.Request) (*http.Request, error) {
	token, from, err := tokenOf(r)
	if err != nil {
		return nil, err
	}
	who, err := g.Verify(r.Context(), token)
	if err == nil && from == fromCookie {
		err = sameSite(r)
	}
	if err != nil {
		return nil, err
	}
	ctx := access.With(r.Context(), who)
	if isUpgrade(r) { // nothing else ends a WebSocket that is silent
		bound, stop := who.Bind(ctx)
		context.AfterFunc(ctx, stop)
		ctx = bound
	}
	out := r.WithContext(ctx)
	if from == fromQuery {
		withoutToken(out)
	}
	return out, nil
}

// Verify returns the identity of a token.
func (g *Gate) Verify(ctx context.Context, token string) (*access.Identity, error) {
	if token == "" {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "this needs a token").WithHint("send the header Authorization: Bearer and the token")
	}
	if len(token) <= maxToken {
		for _, v := range g.verifiers {
			if who, err := v.Verify(ctx, token); who != nil || err != nil {
				return who, err
			}
		}
	}
	return nil, tapedeck.Errorf(tapedeck.Unauthorized, "this is no token of this server")
}

// Where a token was found.
type source int

const (
	fromHeader source = iota
	fromQuery
	fromCookie
)

// tokenOf returns the token of a request, "" if it has none.
func tokenOf(r *http.Request) (string, source, error) {
	if values := r.Header["Authorization"]; len(values) > 0 {
		scheme, token, _ := strings.Cut(values[0], " ")
		if len(values) > 1 || !strings.EqualFold(scheme, "bearer") {
			return "", fromHeader, tapedeck.Errorf(tapedeck.Unauthorized, "the header Authorization is not Bearer and a token")
		}
		return strings.TrimSpace(token), fromHeader, nil
	}
	if strings.Contains(r.URL.RawQuery, parameter+"=") {
		if token := r.URL.Query().Get(parameter); token != "" {
			if !isStream(r) {
				return "", fromQuery, tapedeck.Errorf(tapedeck.Unauthorized, "the parameter token is for the event streams and WebSockets of browsers, and this request opens none").
					WithHint("send the header Authorization: Bearer and the token")
			}
			return token, fromQuery, nil
		}
	}
	if c, err := r.Cookie(Cookie); err == nil {
		return c.Value, fromCookie, nil
	}
	return "", fromHeader, nil
}

// The paths of the event streams and of the WebSockets, as patterns of [path.Match]. Where
// a path has more than streams, the request says by its header Accept or its parameters that
// it wants one. A test compares them with what all routes answer.
var (
	eventStreams = []string{
		"/api/v1/sessions/*/stream", "/api/v1/sessions/*/events",
		"/api/sessions/*/stream", "/api/sessions/*/events",
		"/sse/*/sessions/*/events", "/sse/*/sessions/*/stream", "/sse/api/v1/sessions/*/events", "/sse/api/v1/sessions/*/stream",
		"/channels/*/sessions/*/events", "/channels/*/sessions/*/stream", "/channels/api/v1/sessions/*/events", "/channels/api/v1/sessions/*/stream",
		"/aisdk/*/*/stream", "/a2a/*/tasks/*:subscribe", "/api/a2a/*/*/tasks/*:subscribe",
	}
	sockets = []string{
		"/api/v1/ws", "/api/v1/sessions/*/ws", "/api/v1/sessions/*/ws/replay", "/api/ws", "/api/sessions/*/ws", "/api/sessions/*/ws/replay",
		"/sse/api/v1/ws", "/sse/api/v1/sessions/*/ws", "/sse/api/v1/sessions/*/ws/replay",
		"/channels/api/v1/ws", "/channels/api/v1/sessions/*/ws", "/channels/api/v1/sessions/*/ws/replay",
	}
)

// durableRoot begins the paths of Durable Streams.
const durableRoot = "/v1/stream/"

// isStream reports whether a request opens a stream that a browser cannot send headers
// for.
func isStream(r *http.Request) bool {
	p := r.URL.EscapedPath()
	switch {
	case r.Method != http.MethodGet:
		return false
	case isUpgrade(r):
		return matches(sockets, p)
	case strings.HasPrefix(p, durableRoot):
		return r.URL.Query().Get("live") == "sse"
	}
	return strings.Contains(strings.Join(r.Header["Accept"], ","), "text/event-stream") && matches(eventStreams, p)
}

// isUpgrade reports whether a request opens a WebSocket.
func isUpgrade(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

func matches(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, p)
		return ok && err == nil
	})
}

// withoutToken removes the token from the URL of a request, so that nothing logs it.
func withoutToken(r *http.Request) {
	u := *r.URL
	var kept []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err != nil || plain != parameter {
			kept = append(kept, pair)
		}
	}
	u.RawQuery = strings.Join(kept, "&")
	r.URL = &u
	if path, _, ok := strings.Cut(r.RequestURI, "?"); ok {
		r.RequestURI = path
	}
}
