package server

import (
	"net/http"
	"slices"
	"strings"
)

// The headers of CORS are set here for every endpoint and every answer, including errors
// and streams: without them an answer looks to a page as if the server did not run. The
// protocols set none of these headers.
//
// All answers share the values that never change, so that they cost no allocation. They
// must not be modified.
var (
	valAnyOrigin   = []string{"*"}
	valTrue        = []string{"true"}
	valVaryOrigin  = []string{"Origin"}
	valCORSMaxAge  = []string{"7200"} // Chromium caches a preflight for at most this long, other browsers for at most a day
	valCORSMethods = []string{"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}

	// Every header that an endpoint reads, and the headers that clients of event streams
	// and HTTP libraries add. A preflight that names other headers allows them, too: see
	// preflight.
	valCORSHeaders = []string{"Accept, Authorization, Cache-Control, Content-Type, If-Match, If-None-Match, Last-Event-ID, " +
		"Producer-Id, Producer-Epoch, Producer-Seq, " +
		"Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, " +
		"Stream-Seq, Stream-TTL, Stream-Expires-At, Stream-Closed, Stream-Forked-From, Stream-Fork-Offset, Stream-Fork-Sub-Offset, " +
		"X-Requested-With"}

	// Every header of an answer that a program may need.
	valCORSExpose = []string{"Allow, Content-Disposition, Content-Type, ETag, Location, Mcp-Session-Id, Retry-After, Tapedeck-Api, Tapedeck-Begun, Tapedeck-Instance, " +
		"Producer-Epoch, Producer-Seq, Producer-Expected-Seq, Producer-Received-Seq, " +
		"Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor, Stream-TTL, Stream-Expires-At, Stream-SSE-Data-Encoding"}
)

// share lets a page of an allowed origin read the answer to r. It reports whether r was
// a preflight, which it has answered.
func (o *Options) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(o.AllowOrigins) == 0 {
		return false
	}
	h, origin := w.Header(), first(r.Header["Origin"])
	switch {
	case slices.Contains(o.AllowOrigins, "*"):
		h["Access-Control-Allow-Origin"] = valAnyOrigin // without credentials: browsers refuse both together
		h["Timing-Allow-Origin"] = valAnyOrigin
	default:
		h["Vary"] = valVaryOrigin // also without an Origin: a cache must not give such an answer to a page
		if origin == "" || !slices.Contains(o.AllowOrigins, origin) {
			return false // the server's own page needs no header of CORS
		}
		h["Access-Control-Allow-Origin"] = r.Header["Origin"][:1:1]
		h["Timing-Allow-Origin"] = r.Header["Origin"][:1:1] // tells the page whether it has HTTP/2
		if origin != opaque {                               // a frame of any page can have that origin
			h["Access-Control-Allow-Credentials"] = valTrue
		}
	}
	if r.Method != http.MethodOptions || origin == "" || first(r.Header["Access-Control-Request-Method"]) == "" {
		h["Access-Control-Expose-Headers"] = valCORSExpose
		return false
	}
	preflight(h, r)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// preflight sets the headers that say what a page may send. They are the same for every
// path, so that a page can read the error of an unknown path.
func preflight(h http.Header, r *http.Request) {
	h["Access-Control-Allow-Methods"] = valCORSMethods
	h["Access-Control-Allow-Headers"] = valCORSHeaders
	if more := unlisted(first(r.Header["Access-Control-Request-Headers"])); len(more) > 0 {
		h["Access-Control-Allow-Headers"] = []string{valCORSHeaders[0] + ", " + strings.Join(more, ", ")}
	}
	h["Access-Control-Max-Age"] = valCORSMaxAge
	if first(r.Header["Access-Control-Request-Private-Network"]) == "true" {
		h["Access-Control-Allow-Private-Network"] = valTrue // a public page calls an address of a private network
	}
}

// maxUnlisted is the largest number of headers that a preflight allows besides
// valCORSHeaders.
const maxUnlisted = 100

// unlisted returns the headers that a preflight asks for and that are not in
// valCORSHeaders. Programs add headers of their own, for example for traces. The server
// trusts no header because of the assumption that a page cannot send it.
func unlisted(asked string) (names []string) {
	listed := strings.Split(valCORSHeaders[0], ", ")
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimSpace(name)
		known := slices.ContainsFunc(listed, func(n string) bool { return strings.EqualFold(n, name) })
		if isHeaderName(name) && !known && len(names) < maxUnlisted {
			names = append(names, name)
		}
	}
	return names
}

// isHeaderName reports whether name is a token of HTTP and not the wildcard.
func isHeaderName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && name != "*"
}
