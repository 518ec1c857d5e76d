package httpapi

import (
	"net/http"
	"strings"
)

// Prefix returns what a program removed from the path of a request before it came here,
// such as with [http.StripPrefix], or "". The path that a client sees begins with it.
func Prefix(r *http.Request) string {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	prefix, ok := strings.CutSuffix(asked, r.URL.EscapedPath())
	if !ok || !strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "//") { // such as the http://host of a proxy's request
		return ""
	}
	return prefix
}
