// Package problem answers HTTP requests with errors. It has the one table from the
// kind of an error to its status, and the one JSON body that an error has.
package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/secret"
)

var statuses = map[tapedeck.Kind]int{
	tapedeck.Invalid:      http.StatusBadRequest,
	tapedeck.Unauthorized: http.StatusUnauthorized,
	tapedeck.Forbidden:    http.StatusForbidden,
	tapedeck.NotFound:     http.StatusNotFound,
	tapedeck.Conflict:     http.StatusConflict,
	tapedeck.Gone:         http.StatusGone,
	tapedeck.Replaced:     http.StatusGone,
	tapedeck.Precondition: http.StatusPreconditionFailed,
	tapedeck.TooLarge:     http.StatusRequestEntityTooLarge,
	tapedeck.Unsupported:  http.StatusUnsupportedMediaType,
	tapedeck.Limited:      http.StatusTooManyRequests,
	tapedeck.Internal:     http.StatusInternalServerError,
	tapedeck.Unavailable:  http.StatusServiceUnavailable,
}

// Status returns the HTTP status of a kind of error.
func Status(k tapedeck.Kind) int {
	if status, ok := statuses[k]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Kinds returns all kinds of errors, sorted.
func Kinds() []tapedeck.Kind { return slices.Sorted(maps.Keys(statuses)) }

// KindOf returns the kind of error that a status stands for, "" for a status that is no
// error. A status that no kind has is [tapedeck.Invalid] or [tapedeck.Internal].
func KindOf(status int) tapedeck.Kind {
	if status < 400 {
		return ""
	}
	for _, k := range Kinds() { // sorted: if two kinds have a status, it is always the same one
		if statuses[k] == status {
			return k
		}
	}
	switch {
	case status == http.StatusNotImplemented:
		return tapedeck.Unsupported
	case status < 500:
		return tapedeck.Invalid
	}
	return tapedeck.Internal
}

// A Body is the JSON body of every error.
type Body struct {
	Error Detail `json:"error"`
}

// A Detail is an error as its receiver sees it.
type Detail struct {
	Kind    tapedeck.Kind `json:"kind"`
	Message string        `json:"message"`
	Hint    string        `json:"hint,omitempty"`

	Problems []tapedeck.Problem `json:"problems,omitempty"` // what is wrong with a diagram, place by place; absent otherwise
}

// A statusError is an error whose status is not that of its kind.
type statusError struct {
	err    *tapedeck.Error
	status int
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// NoSuchPath returns the error of a path where there is nothing.
func NoSuchPath(path string) error {
	if len(path) > 200 {
		path = strings.ToValidUTF8(path[:200], "") + "…"
	}
	return tapedeck.Errorf(tapedeck.NotFound, "there is nothing at %q", path)
}

// MethodNotAllowed sets the header Allow to the allowed methods and returns the
// error of a request that has another one.
func MethodNotAllowed(w http.ResponseWriter, r *http.Request, allowed ...string) error {
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	return &statusError{
		tapedeck.Errorf(tapedeck.Invalid, "%.64q cannot be used on %.200s", r.Method, r.URL.Path).WithHint("this path allows %s", list),
		http.StatusMethodNotAllowed,
	}
}

// Write answers r with err. It logs what the client must not see: the cause of an
// internal error, and why something is unavailable.
//
// If the context of r has ended, the client has closed the connection or the server
// stops. The answer is 503 then: an empty answer would look like a success.
func Write(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	e, status := Resolve(r, err, log)
	explain(w, e)
	body := Encode(e)
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", RetryAfter(e))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // if the client has disconnected, nobody needs the answer
}

// An Explained response is told which error it has. It may be inside of others, which have
// the method Unwrap of [http.ResponseController].
type Explained interface{ Explain(e *tapedeck.Error) }

func explain(w http.ResponseWriter, e *tapedeck.Error) {
	for {
		if x, ok := w.(Explained); ok {
			x.Explain(e)
			return
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = outer.Unwrap()
	}
}

// RetryAfter returns the value of the header Retry-After: whole seconds, at least one.
func RetryAfter(e *tapedeck.Error) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(e.After.Seconds()))), 10)
}

// Encode returns the body of an answer with an error.
func Encode(e *tapedeck.Error) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(Body{Detail{e.Kind, e.Message, e.Hint, e.Problems}}) // strings can be encoded
	return b.Bytes()
}

// Shown returns the error that the client of r may see, for a protocol that answers in a
// form of its own. It logs the rest as [Write] does.
func Shown(r *http.Request, err error, log *slog.Logger) *tapedeck.Error {
	e, _ := Resolve(r, err, log)
	return e
}

// Resolve returns the error that the client of r sees, and its status. It logs what
// the client must not see, like [Write]. It is for protocols whose errors have a form of
// their own.
func Resolve(r *http.Request, err error, log *slog.Logger) (*tapedeck.Error, int) {
	if refused, status := intake.Refused(err); refused != nil { // this ends the context, too
		return refused, status
	}
	if r.Context().Err() != nil {
		return givenUp, http.StatusServiceUnavailable
	}
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return tapedeck.Errorf(tapedeck.TooLarge, "the body has more than %d bytes", tooLong.Limit).
			WithHint("send it in parts"), http.StatusRequestEntityTooLarge
	}
	if s := (*statusError)(nil); errors.As(err, &s) {
		return s.err, s.status
	}
	var e *tapedeck.Error
	if errors.As(err, &e) && errors.Is(err, tapedeck.ErrDamaged) { // the store has logged it
		return e, http.StatusInternalServerError
	}
	if !errors.As(err, &e) || e.Kind == tapedeck.Internal || statuses[e.Kind] == 0 {
		return internal(r, err, log), http.StatusInternalServerError
	}
	if e.Kind == tapedeck.Unavailable && e.Err != nil {
		log.Warn("a request could not be served", "id", ID(r), "method", secret.Cut(r.Method), "path", secret.Path(r), "error", e, "cause", e.Err)
	}
	return e, statuses[e.Kind]
}

var givenUp = tapedeck.Errorf(tapedeck.Unavailable, "the request was given up before its answer").
	WithHint("if the request writes, first check whether it was carried out; send it again only if it was not")

// internal logs an internal error and returns what the client learns of it.
func internal(r *http.Request, err error, log *slog.Logger) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Internal, "internal error (id %s)", Log(r, err, log)).
		WithHint("the server's log has more under this id")
}

// ID returns the id of a request in logs: that of its header X-Request-Id, which the server
// has checked, otherwise a new one.
func ID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	return tapedeck.NewID("req_")
}

// Log logs an internal error of a request and returns the id under which the log
// has it.
func Log(r *http.Request, err error, log *slog.Logger) (id string) {
	id = ID(r)
	switch tapedeck.KindOf(err) {
	case tapedeck.Unauthorized, tapedeck.Forbidden, tapedeck.NotFound, tapedeck.Limited: // its client may not read on; that is no fault
		log.Debug("a request ended", "id", id, "method", secret.Cut(r.Method), "path", secret.Path(r), "reason", secret.Cut(err.Error()))
		return id
	}
	attrs := []any{"id", id, "method", secret.Cut(r.Method), "path", secret.Path(r), "error", err}
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, "cause", cause)
	}
	log.Error("a request failed", attrs...)
	return id
}
