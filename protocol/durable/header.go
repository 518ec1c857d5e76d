package durable

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
)

const (
	jsonType = "application/json"
)

var (
	readMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	allMethods  = []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodOptions}
)

// All responses share the values of headers that never change, so that they cost no
// allocation. They must not be modified. They have no spare capacity, so an append makes
// a copy.
var (
	valTrue    = []string{"true"}
	valNoStore = []string{"no-store"}
	valNoCache = []string{"no-cache"}
	valJSON    = []string{jsonType}
	valNosniff = []string{"nosniff"}
	valCORP    = []string{"cross-origin"}
	valSandbox = []string{"sandbox"}

	// A page that ends before the tail never changes. A page at the tail can change, so
	// clients ask for it again each time and get 304.
	valMiddle = []string{"private, max-age=60, stale-while-revalidate=300"}
	valTail   = []string{"private, no-cache"}
)

// Names of the protocol's headers in the spelling of net/http, which differs from the
// protocol's own spelling for some of them.
const (
	hNextOffset  = "Stream-Next-Offset"
	hUpToDate    = "Stream-Up-To-Date"
	hClosed      = "Stream-Closed"
	hCursor      = "Stream-Cursor"
	hSeq         = "Stream-Seq"
	hTTL         = "Stream-Ttl"
	hExpires     = "Stream-Expires-At"
	hEncoding    = "Stream-Sse-Data-Encoding"
	hForkedFrom  = "Stream-Forked-From"
	hForkOffset  = "Stream-Fork-Offset"
	hForkSub     = "Stream-Fork-Sub-Offset"
	hProducer    = "Producer-Id"
	hEpoch       = "Producer-Epoch"
	hProducerSeq = "Producer-Seq"
	hExpectedSeq = "Producer-Expected-Seq"
	hReceivedSeq = "Producer-Received-Seq"
)

func set(h http.Header, name, value string) { h[name] = []string{value} }

func setInt(h http.Header, name string, v int64) { set(h, name, strconv.FormatInt(v, 10)) }

// setCommon sets the headers of every response.
func setCommon(h http.Header, r *http.Request) {
	h["X-Content-Type-Options"] = valNosniff
	h["Cross-Origin-Resource-Policy"] = valCORP
	// A stream may have a page of any author, with any content type. A sandboxed page
	// runs no scripts.
	if r.Method == http.MethodGet {
		h["Content-Security-Policy"] = valSandbox
	}
}

// setEntry sets the headers that describe a stream.
func setEntry(h http.Header, s *tapedeck.Session) {
	set(h, "Content-Type", s.ContentType)
	setTail(h, s.Gen, s.Head, s.Closed)
	h["Cache-Control"] = valNoStore
	if s.TTL > 0 {
		setInt(h, hTTL, int64(s.TTL/time.Second))
	}
	if !s.Expires.IsZero() {
		set(h, hExpires, s.Expires.UTC().Format(time.RFC3339Nano))
	}
}

// setTail sets the headers of the tail of a stream in an incarnation.
func setTail(h http.Header, gen, head int64, closed bool) {
	set(h, hNextOffset, offset{n: head}.of(gen))
	if closed {
		h[hClosed] = valTrue
	}
}
