package tapedeck

import (
	"errors"
	"fmt"
	"time"
)

// A Kind says what an error means to the caller, whatever its cause.
type Kind string

// These are the error kinds, each with its HTTP status. Package internal/problem
// maps kinds to statuses, for all protocols.
const (
	Invalid      Kind = "invalid"      // 400: the request is malformed or not allowed
	Unauthorized Kind = "unauthorized" // 401: no valid credentials
	Forbidden    Kind = "forbidden"    // 403: the credentials are valid, but not for this
	NotFound     Kind = "not_found"    // 404: no such session, run or event
	Conflict     Kind = "conflict"     // 409: the session is not in the state that the request assumes
	Gone         Kind = "gone"         // 410: it was deleted, but forks still need its events
	Replaced     Kind = "replaced"     // 410: the client's cursor is of another history of the session: it was deleted and created again, or restored
	Precondition Kind = "precondition" // 412: a condition in a header does not hold
	TooLarge     Kind = "too_large"    // 413: over a limit of size or number
	Unsupported  Kind = "unsupported"  // 415: a media type or feature that is not supported
	Limited      Kind = "limited"      // 429: too many of something; try again later
	Internal     Kind = "internal"     // 500: a fault of the program; the text is for operators only
	Unavailable  Kind = "unavailable"  // 503: it cannot be stored or reached now; nothing was changed; try again
)

// An Error is an error with a meaning for users: a kind, a sentence about what
// happened, and a hint about what to do. Any other error is [Internal], and
// only operators see its text.
type Error struct {
	Kind    Kind
	Message string // one sentence without a full stop
	Hint    string // what to do about it; may be empty
	Err     error  // the cause, for the operator's log; users never see it

	// After is when it is worth to try again, for [Limited] and [Unavailable]; 0 for soon.
	After time.Duration

	// Problems is what is wrong with a document of the user, such as a diagram, place
	// by place; nil if Message says it all.
	Problems []Problem
}

// A Problem is one thing that is wrong with a document.
type Problem struct {
	Line    int    `json:"line,omitempty"`    // from 1; 0 if it has no line
	Element string `json:"element,omitempty"` // the id of the element of a diagram; may be empty
	Name    string `json:"name,omitempty"`    // the name of the element, for people; may be empty
	Message string `json:"message"`           // one sentence without a full stop
	Hint    string `json:"hint,omitempty"`    // what to do about it; may be empty
}

// Error implements error. It does not include the cause or the hint.
func (e *Error) Error() string { return e.Message }

// ErrDamaged marks an error of the kind [Internal] that says which event is damaged. Unlike
// others of this kind, users see its text.
var ErrDamaged = errors.New("the stored data is damaged")

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [*Error] of kind k. A %w verb sets its cause, whose text
// becomes part of the message that users see; see [Error.Because] for a hidden
// cause.
func Errorf(k Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint returns e with a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Because returns e with a cause.
func (e *Error) Because(err error) *Error {
	e.Err = err
	return e
}

// KindOf returns the kind of err, "" for nil. An error without a kind is
// [Internal].
func KindOf(err error) Kind {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Kind
	}
	return Internal
}

// A Refusal says why a well-formed append was refused.
type Refusal string

// These are the refusals, in the order in which a store checks them.
const (
	RefusedClosed Refusal = "closed"      // the session is closed
	RefusedEpoch  Refusal = "stale_epoch" // a newer epoch of the same producer has written
	RefusedReset  Refusal = "epoch_seq"   // a new epoch must start with sequence 0
	RefusedGap    Refusal = "gap"         // sequence numbers of the producer are missing
	RefusedSeq    Refusal = "seq"         // [Append.StreamSeq] is not above the last one
	RefusedOffset Refusal = "offset"      // the head is not [Append.Expect]
)

// An AppendError is the error of a refused append. It unwraps to an [*Error],
// so [KindOf] works on it: RefusedEpoch is [Forbidden], RefusedReset is
// [Invalid], all others are [Conflict].
type AppendError struct {
	Refusal Refusal
	Head    int64 // the head of the session at the time of the refusal
	Epoch   int64 // RefusedEpoch: the current epoch of the producer
	Seq     int64 // RefusedGap: the sequence number that would be accepted
	Err     *Error
}

// Error implements error.
func (e *AppendError) Error() string { return e.Err.Error() }

// Unwrap returns the [*Error] with kind, message and hint.
func (e *AppendError) Unwrap() error { return e.Err }

// RefusalOf returns why an append was refused, "" if err is not about that.
func RefusalOf(err error) Refusal {
	var e *AppendError
	if errors.As(err, &e) {
		return e.Refusal
	}
	return ""
}

// AtIndex returns err with the number of its event: i counts from 0, n is the
// number of events. If n is 1, it returns err.
func AtIndex(err error, i, n int) error {
	if n == 1 {
		return err
	}
	out := Errorf(KindOf(err), "event %d of %d: %w", i+1, n, err)
	var e *Error
	if errors.As(err, &e) {
		out.Hint = e.Hint
	}
	return out
}
