package server

import (
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// outside serves what is below /api and not below /api/v1: what kagent asks for, and next.
func (o *Options) outside(next http.Handler) http.Handler {
	if o.A2A == nil || o.IsKagent == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.IsKagent(r) {
			o.A2A.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// alias serves /api/… as /api/v1/…
func alias(next http.Handler) http.Handler {
	return moved(next, "", func(path string) string { return "/api/v1" + strings.TrimPrefix(path, "/api") })
}

// within serves the paths of the API below a root: /api/v1/…, /api/… and /v1/….
func within(root string, next http.Handler) http.Handler {
	return moved(next, root, func(path string) string {
		for _, base := range []string{"/api/v1/", "/api/", "/v1/"} {
			if rest, ok := strings.CutPrefix(path, root+base); ok {
				return "/api/v1/" + rest
			}
		}
		return path // nothing is there
	})
}

// moved serves a request below a root under another path. The address of what is created
// begins with the root.
func moved(next http.Handler, root string, to func(path string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r2 := new(http.Request)
		*r2 = *r
		u := *r.URL
		if u.Path = to(u.Path); u.RawPath != "" {
			u.RawPath = to(u.RawPath)
		}
		r2.URL = &u
		if prefix := httpapi.Prefix(r) + root; prefix != "" {
			r2.RequestURI = prefix + u.EscapedPath()
		}
		next.ServeHTTP(w, r2)
	})
}
