package server

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// identified returns a request with the identity of its sender, r itself if it needs none,
// or nil if it has answered the request.
//
//go:noinline
func (f *front) identified(w http.ResponseWriter, r *http.Request) *http.Request {
	if f.isPublic(r) {
		return f.orLogin(w, r)
	}
	in, err := f.Authenticate(r)
	if err == nil {
		return in
	}
	if tapedeck.KindOf(err) == tapedeck.Unauthorized {
		giveID(w, r)
		w.Header().Set("WWW-Authenticate", `Bearer realm="tapedeck"`)
	}
	f.fail(w, r, err)
	return nil
}

// orLogin returns a public request. If it is for a page of the screen, and its browser is
// not logged in, it sends the browser to the page for that and returns nil.
func (f *front) orLogin(w http.ResponseWriter, r *http.Request) *http.Request {
	isPage := f.Screen != nil && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!slices.Contains([]string{"/login", "/healthz", "/readyz"}, r.URL.Path) && !strings.HasPrefix(r.URL.Path, "/assets/")
	if !isPage || httpapi.Prefix(r) != "" {
		return r
	}
	page, u := *r, *r.URL
	u.RawQuery = "" // a page has no token there
	page.URL = &u
	if _, err := f.Authenticate(&page); tapedeck.KindOf(err) != tapedeck.Unauthorized {
		return r
	}
	next := r.URL.EscapedPath()
	if q := r.URL.Query(); len(q) > 0 && !q.Has("token") {
		next += "?" + r.URL.RawQuery
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/login?next="+url.QueryEscape(next), http.StatusFound)
	return nil
}

// isPublic reports whether everybody may send a request: for the files of the screen, the
// health checks, the log-in, and the keys that sign webhooks.
func (f *front) isPublic(r *http.Request) bool {
	if r.Method == http.MethodGet && r.URL.Path == "/v1/stream/__ds/jwks.json" {
		return true
	}
	if f.handlerFor(r.URL, f.mux) != http.Handler(f.mux) {
		return false
	}
	switch _, pattern := f.mux.Handler(r); pattern {
	case "/login":
		return true
	case "/", "GET /{$}", "GET /healthz", "GET /readyz":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return false
}

// isAllowedHost reports whether a Host header has a name of [Options.AllowHosts].
func (o *Options) isAllowedHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return slices.ContainsFunc(o.AllowHosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}
