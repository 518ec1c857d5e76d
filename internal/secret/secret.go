// Package secret keeps tokens out of what is logged. A client may send one where it does not
// belong: in a path, as an id, as the id of a request.
package secret

import (
	"net/http"
	"net/url"
	"strings"
)

// prefixes begin tokens: those of the file of tokens, of sessions, of log-ins, and JSON Web
// Tokens.
var prefixes = []string{"td_", "tds_", "tdl_", "eyJ"}

// Instead is what a text has in place of what may be a token.
const Instead = "(perhaps a token)"

// Cut cuts a text off where a token may begin.
func Cut(s string) string {
	for i := range len(s) {
		for _, p := range prefixes {
			if strings.HasPrefix(s[i:], p) && (i == 0 || !isWord(s[i-1])) {
				return s[:i] + Instead
			}
		}
	}
	return s
}

// Path returns the path of a request for a log: never the query, which may have a token,
// nothing that may be one, and only characters that no terminal obeys.
func Path(r *http.Request) string {
	if p := Cut(r.URL.Path); p != r.URL.Path {
		return (&url.URL{Path: p}).EscapedPath()
	}
	return r.URL.EscapedPath()
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
