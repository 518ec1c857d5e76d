package server

import (
	"net/http"
	"slices"
	"strings"
)

// The headers of CORS are set here, for every endpoint and every answer, errors
// and streams included: an answer without them looks to a page as if the server
// were not there. Protocols set none of their own.
//
// Values that never change are shared by all answers, so that they cost no
// allocation. Nobody writes into them.
var (
	valAnyOrigin   = []string{"*"}
	valTrue        = []string{"true"}
	valVaryOrigin  = []string{"Origin"}
	valCORSMaxAge  = []string{"7200"} // no browser caches a preflight for longer than a day, Chromium for no longer than this
	valCORSMethods = []string{"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}

	// Every header that an endpoint reads, and those that clients of event
	// streams and HTTP libraries add by themselves. A preflight that names others
	// is told that they may come, too: see preflight.
	valCORSHeaders = []string{"Accept, Authorization, Cache-Control, Content-Type, If-Match, If-None-Match, Last-Event-ID, " +
		"Producer-Id, Producer-Epoch, Producer-Seq, " +
		"Stream-Seq, Stream-TTL, Stream-Expires-At, Stream-Closed, Stream-Forked-From, Stream-Fork-Offset, Stream-Fork-Sub-Offset, " +
		"X-Requested-With"}

	// Every header of an answer that says more than its body.
	valCORSExpose = []string{"Allow, Content-Disposition, Content-Type, ETag, Location, Retry-After, Tapedeck-Instance, " +
		"Producer-Epoch, Producer-Seq, Producer-Expected-Seq, Producer-Received-Seq, " +
		"Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor, Stream-TTL, Stream-Expires-At, Stream-SSE-Data-Encoding"}
)

// share lets a page of an allowed origin read the answer to r. It reports whether
// r was only the question whether the page may send a request, and is answered.
func (o *Options) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(o.AllowOrigins) == 0 {
		return false
	}
	h, origin := w.Header(), first(r.Header["Origin"])
	switch {
	case slices.Contains(o.AllowOrigins, "*"):
		h["Access-Control-Allow-Origin"] = valAnyOrigin // and no credentials: browsers refuse both together
	default:
		h["Vary"] = valVaryOrigin // also of an answer to nobody's page: a cache must not give it to one
		if origin == "" || !slices.Contains(o.AllowOrigins, origin) {
			return false // our own page needs none of this
		}
		h["Access-Control-Allow-Origin"] = r.Header["Origin"][:1:1]
		if origin != opaque { // anybody's page can have that one, in a frame
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

// preflight says what a page may send. It is the same for every path, so that an
// unknown one is answered with an error that the page can read.
func preflight(h http.Header, r *http.Request) {
	h["Access-Control-Allow-Methods"] = valCORSMethods
	h["Access-Control-Allow-Headers"] = valCORSHeaders
	if more := unlisted(first(r.Header["Access-Control-Request-Headers"])); len(more) > 0 {
		h["Access-Control-Allow-Headers"] = []string{valCORSHeaders[0] + ", " + strings.Join(more, ", ")}
	}
	h["Access-Control-Max-Age"] = valCORSMaxAge
	if first(r.Header["Access-Control-Request-Private-Network"]) == "true" {
		h["Access-Control-Allow-Private-Network"] = valTrue // a public page asks for an address in here
	}
}

// maxUnlisted is the most names that an answer to a preflight has beside those of
// valCORSHeaders.
const maxUnlisted = 100

// unlisted returns the names among those that a preflight asks for which are not
// in valCORSHeaders. Programs add headers of their own, for traces and the like,
// and nothing here trusts a header because a page could not have sent it.
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

// isHeaderName reports whether name is a token of HTTP, other than the wildcard.
func isHeaderName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && name != "*"
}
