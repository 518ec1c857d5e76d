package durable

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
)

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

// errNotAllowed has a status that is not that of its kind.
var errNotAllowed = tapedeck.Errorf(tapedeck.Invalid, "this method is not allowed here").
	WithHint("the header Allow lists those that are")

func notAllowed(w http.ResponseWriter, methods string) error {
	set(w.Header(), "Allow", methods)
	return errNotAllowed
}

// noContent answers a request that has no more to say than whether it worked.
func noContent(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *tapedeck.Error
	if given, _ := intake.Refused(err); given != nil { // that ends the context, too
		e = given
	} else if r.Context().Err() != nil {
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
	writeError(w, e, statusOf(e))
}

func statusOf(e *tapedeck.Error) int {
	if e == errNotAllowed {
		return http.StatusMethodNotAllowed
	}
	if _, status := intake.Refused(e); status != 0 {
		return status
	}
	return statuses[e.Kind]
}

func writeError(w http.ResponseWriter, e *tapedeck.Error, status int) {
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
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		set(h, "Retry-After", "1")
	}
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
