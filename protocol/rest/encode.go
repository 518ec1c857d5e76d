package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// statuses has the HTTP status of each kind of error.
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

// A statusError is an error whose status is not that of its kind.
type statusError struct {
	err    error
	status int
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func noSuchPath(p string) error {
	if len(p) > 200 {
		p = p[:200] + "…"
	}
	return tapedeck.Errorf(tapedeck.NotFound, "there is nothing at %q", p)
}

func methodNotAllowed(r *http.Request, allowed []string) error {
	return &statusError{
		err: tapedeck.Errorf(tapedeck.Invalid, "%q cannot be used on %s", r.Method, r.URL.Path).
			WithHint("it takes %s", strings.Join(allowed, ", ")),
		status: http.StatusMethodNotAllowed,
	}
}

// fail answers with an error. If the request was given up, by the client or by a
// server that stops, the connection is cut: whether something was appended may
// be open, and to return without an answer would be taken for a success.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	given, status := intake.Refused(err)
	if given != nil { // that ends the context, too
		err = &statusError{given, status}
	} else if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		err = tapedeck.Errorf(tapedeck.TooLarge, "the body has more than %d bytes", tooLong.Limit).
			WithHint("send it in parts")
	}
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind == tapedeck.Internal || statuses[e.Kind] == 0 {
		e = h.internal(r, err)
	}
	status = statuses[e.Kind]
	if s := (*statusError)(nil); errors.As(err, &s) {
		status = s.status
	}
	refused(w.Header(), err)
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	_ = writeJSON(w, status, api.Error{Error: api.ErrorDetail{Kind: e.Kind, Message: e.Message, Hint: e.Hint}})
}

// internal logs an error and returns what is said of it to the client.
func (h *handler) internal(r *http.Request, err error) *tapedeck.Error {
	id := tapedeck.NewID("req_")
	attrs := []any{"id", id, "method", r.Method, "path", r.URL.Path, "error", err}
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, "cause", cause)
	}
	h.Logger.Error("a request failed", attrs...)
	return tapedeck.Errorf(tapedeck.Internal, "internal error (id %s)", id).
		WithHint("the server's log says more under this id")
}

// refused adds to h what a program needs to go on after a refused append, under
// the names that Durable Streams uses.
func refused(h http.Header, err error) {
	var a *tapedeck.AppendError
	if !errors.As(err, &a) {
		return
	}
	switch a.Refusal {
	case tapedeck.RefusedEpoch:
		h.Set("Producer-Epoch", strconv.FormatInt(a.Epoch, 10))
	case tapedeck.RefusedGap:
		h.Set("Producer-Expected-Seq", strconv.FormatInt(a.Seq, 10))
	case tapedeck.RefusedOffset:
		h.Set("ETag", etagOf(a.Head))
	default: // the sentence says it all
	}
}

// etagOf returns the ETag that If-Match takes.
func etagOf(head int64) string { return fmt.Sprintf("%q", strconv.FormatInt(head, 10)) }

// orEmpty returns list, or an empty one for nil, which would be null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// writeJSON answers with v. An error is one of encoding; nothing was sent then.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%T cannot be encoded: %w", v, err)
	}
	writeBytes(w, status, b.Bytes())
	return nil
}

// writeBytes answers with JSON.
func writeBytes(w http.ResponseWriter, status int, b []byte) {
	setJSON(w.Header(), len(b))
	w.WriteHeader(status)
	_, _ = w.Write(b) // if the client is gone there is nobody to tell
}

// setJSON sets the headers of an answer of so many bytes of JSON.
func setJSON(h http.Header, size int) {
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(size))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
}
