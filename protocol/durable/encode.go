package durable

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
)

const (
	jsonType   = "application/json"
	textType   = "text/plain; charset=utf-8"
	allMethods = "GET, HEAD, PUT, POST, DELETE, OPTIONS"
)

// Values of headers that never change are shared by all responses, so that they
// cost no allocation. Nobody writes into them, and as they have no spare
// capacity, whoever appends gets a copy.
var (
	valTrue      = []string{"true"}
	valNoStore   = []string{"no-store"}
	valNoCache   = []string{"no-cache"}
	valJSON      = []string{jsonType}
	valNosniff   = []string{"nosniff"}
	valAnyOrigin = []string{"*"}
	valCORP      = []string{"cross-origin"}
	valSandbox   = []string{"sandbox"}

	// A page that ends before the tail can never change. One at the tail can,
	// so it is asked for again each time, at the price of a 304.
	valMiddle = []string{"private, max-age=60, stale-while-revalidate=300"}
	valTail   = []string{"private, no-cache"}

	valExpose = []string{"Content-Type, ETag, Location, Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor, " +
		"Stream-TTL, Stream-Expires-At, Stream-SSE-Data-Encoding, " +
		"Producer-Epoch, Producer-Seq, Producer-Expected-Seq, Producer-Received-Seq"}
	valAllowHeaders = []string{"Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, " +
		"Stream-Seq, Stream-TTL, Stream-Expires-At, Stream-Closed, " +
		"Stream-Forked-From, Stream-Fork-Offset, Stream-Fork-Sub-Offset, " +
		"Producer-Id, Producer-Epoch, Producer-Seq"}
	valAllowMethods = []string{allMethods}
	valMaxAge       = []string{"86400"}
)

// Names of the protocol's headers, in the spelling of net/http, which some of
// the protocol's own spellings are not.
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
	// What can be cached may be wanted by another page later, whoever asks now.
	if r.Method == http.MethodGet || len(r.Header["Origin"]) > 0 {
		h["Access-Control-Allow-Origin"] = valAnyOrigin
		h["Access-Control-Expose-Headers"] = valExpose
	}
	// A stream may hold a page that somebody else wrote, with any content type:
	// sandboxed, it runs no script here.
	if r.Method == http.MethodGet {
		h["Content-Security-Policy"] = valSandbox
	}
}

func setPreflight(h http.Header) {
	h["Access-Control-Allow-Methods"] = valAllowMethods
	h["Access-Control-Allow-Headers"] = valAllowHeaders
	h["Access-Control-Max-Age"] = valMaxAge
}

// setEntry sets the headers that describe a stream.
func setEntry(h http.Header, s *tapedeck.Session) {
	set(h, "Content-Type", s.ContentType)
	setTail(h, s.Head, s.Closed)
	h["Cache-Control"] = valNoStore
	if s.TTL > 0 {
		setInt(h, hTTL, int64(s.TTL/time.Second))
	}
	if !s.Expires.IsZero() {
		set(h, hExpires, s.Expires.UTC().Format(time.RFC3339Nano))
	}
}

// setTail sets where a stream ends now.
func setTail(h http.Header, head int64, closed bool) {
	set(h, hNextOffset, offset{n: head}.String())
	if closed {
		h[hClosed] = valTrue
	}
}

// statuses is the table of the protocol's answers to errors.
var statuses = map[tapedeck.Kind]int{
	tapedeck.Invalid:      http.StatusBadRequest,
	tapedeck.Unauthorized: http.StatusUnauthorized,
	tapedeck.Forbidden:    http.StatusForbidden,
	tapedeck.NotFound:     http.StatusNotFound,
	tapedeck.Conflict:     http.StatusConflict,
	tapedeck.Gone:         http.StatusGone,
	tapedeck.Precondition: http.StatusPreconditionFailed,
	tapedeck.TooLarge:     http.StatusRequestEntityTooLarge,
	tapedeck.Unsupported:  http.StatusUnsupportedMediaType,
	tapedeck.Limited:      http.StatusTooManyRequests,
	tapedeck.Internal:     http.StatusInternalServerError,
	tapedeck.Unavailable:  http.StatusServiceUnavailable,
}

// errNotAllowed is the one error that has a status of its own.
var errNotAllowed = tapedeck.Errorf(tapedeck.Invalid, "this method is not allowed here").
	WithHint("the header Allow lists those that are")

func notAllowed(w http.ResponseWriter, methods string) error {
	set(w.Header(), "Allow", methods)
	return errNotAllowed
}

// done answers a request that has no more to say than whether it worked.
func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *tapedeck.Error
	if r.Context().Err() != nil {
		// The client is gone; or the server stops, and the client must not take
		// silence for success.
		e = tapedeck.Errorf(tapedeck.Unavailable, "the request was cut off").WithHint("try again")
	} else if !errors.As(err, &e) || e.Kind == tapedeck.Internal {
		h.Logger.Error("a stream request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		e = tapedeck.Errorf(tapedeck.Internal, "something went wrong here").WithHint("the server's log says what")
	} else if e.Err != nil && e.Kind == tapedeck.Unavailable {
		h.Logger.Warn("a stream request could not be served", "method", r.Method, "path", r.URL.Path, "error", e.Err)
	}
	var refused *tapedeck.AppendError
	if errors.As(err, &refused) {
		setRefusal(w.Header(), refused)
		if refused.Refusal == tapedeck.RefusedOffset { // it was asked for as a precondition
			e = &tapedeck.Error{Kind: tapedeck.Precondition, Message: e.Message, Hint: e.Hint}
		}
	}
	writeError(w, e)
}

func writeError(w http.ResponseWriter, e *tapedeck.Error) {
	status := statuses[e.Kind]
	if e == errNotAllowed {
		status = http.StatusMethodNotAllowed
	}
	var body struct {
		Error struct {
			Kind    tapedeck.Kind `json:"kind"`
			Message string        `json:"message"`
			Hint    string        `json:"hint,omitempty"`
		} `json:"error"`
	}
	body.Error.Kind, body.Error.Message, body.Error.Hint = e.Kind, e.Message, e.Hint
	b, _ := json.Marshal(body) // cannot fail
	h := w.Header()
	h["Content-Type"] = valJSON
	h["Cache-Control"] = valNoStore
	setInt(h, "Content-Length", int64(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // if the client is gone there is nobody to tell
}

// setRefusal sets what a client needs to know to go on after its append was
// refused.
func setRefusal(h http.Header, e *tapedeck.AppendError) {
	setTail(h, e.Head, e.Refusal == tapedeck.RefusedClosed)
	switch e.Refusal {
	case tapedeck.RefusedEpoch:
		setInt(h, hEpoch, e.Epoch)
	case tapedeck.RefusedGap:
		setInt(h, hExpectedSeq, e.Seq)
	}
}

// inWords puts what a store says of the session t into the words of who asked
// for a stream.
func (t target) inWords(err error) error {
	var refused *tapedeck.AppendError
	switch kind := tapedeck.KindOf(err); {
	case err == nil || t.isSession:
		return err
	case kind == tapedeck.NotFound:
		return tapedeck.Errorf(kind, "there is no stream %q", t.path()).WithHint("PUT it first")
	case kind == tapedeck.Gone:
		return tapedeck.Errorf(kind, "the stream %q was deleted, and forks still need it", t.path())
	case errors.As(err, &refused):
		return refusedInWords(*refused)
	}
	return err
}

func refusedInWords(e tapedeck.AppendError) error {
	inner := *e.Err
	switch e.Refusal {
	case tapedeck.RefusedClosed:
		inner.Message = "the stream is closed"
	case tapedeck.RefusedSeq:
		inner.Message = "Stream-Seq is not above that of an earlier append"
	case tapedeck.RefusedOffset:
		inner.Message = "the stream is at offset " + strconv.FormatInt(e.Head, 10) + ", not where If-Match expects it"
		inner.Hint = "read what is new and try again with the Stream-Next-Offset of this answer"
	}
	e.Err = &inner
	return &e
}
