package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck/access"
)

// identityKey is where the information about a token has the identity.
const identityKey = "identity"

// identified passes the identity of each request on. The SDK serves all requests of a client
// with the context of its first one, which another token may have sent. It also refuses a
// client that another user has begun.
func identified(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		who := access.From(ctx)
		return &auth.TokenInfo{
			UserID: string(who.Role) + ":" + who.Subject, Expiration: who.Expires, Extra: map[string]any{identityKey: who},
		}, nil
	}
	known := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.From(r.Context())
		if who == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, stop := who.Bind(r.Context()) // its stream ends with the token
		defer stop()
		in := r.WithContext(ctx)
		in.Header = r.Header.Clone()
		in.Header.Set("Authorization", "Bearer identified") // the request may have a cookie instead
		known.ServeHTTP(w, in)
	})
}

// identifying gives handlers the identity of their own request.
func identifying(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if x := req.GetExtra(); x != nil && x.TokenInfo != nil {
			if who, ok := x.TokenInfo.Extra[identityKey].(*access.Identity); ok {
				ctx = access.With(ctx, who)
			}
		}
		return next(ctx, method, req)
	}
}
