package tapedeck

import (
	"errors"
	"fmt"
)

// A Kind says what an error means to the caller, whatever caused it. Every door
// turns kinds into its own status codes with one table.
type Kind string

// The error kinds, with the HTTP status each is shown as.
const (
	Invalid      Kind = "invalid"      // 400: the request cannot be understood or is not allowed as it is
	Unauthorized Kind = "unauthorized" // 401: no valid credentials
	Forbidden    Kind = "forbidden"    // 403: valid credentials, not for this
	NotFound     Kind = "not_found"    // 404: no such session, run or event
	Conflict     Kind = "conflict"     // 409: the session is not in the state that the request assumes
	Gone         Kind = "gone"         // 410: it existed and was deleted, while forks still need its events
	Precondition Kind = "precondition" // 412: a condition given in a header does not hold
	TooLarge     Kind = "too_large"    // 413: over a limit of size or number
	Unsupported  Kind = "unsupported"  // 415: a media type or feature we do not speak
	Limited      Kind = "limited"      // 429: too many of something; try again later
	Internal     Kind = "internal"     // 500: our fault; the text is for the operator only
	Unavailable  Kind = "unavailable"  // 503: it cannot be stored or reached now; nothing was changed; try again
)

// An Error is an error with a meaning for users: a kind, a sentence that says
// what happened, and a hint that says what to do. Any other error is
// [Internal], and its text is shown to operators only.
type Error struct {
	Kind    Kind
	Message string // one sentence without a final stop
	Hint    string // what to do about it; may be empty
	Err     error  // the cause, for the operator's log; never shown to users
}

// Error implements error. It does not include the cause or the hint.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [*Error] of kind k. A %w verb sets its cause.
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

// KindOf reports what err means; nil has kind "". An error that carries no kind
// is [Internal].
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

// A Refusal says why an append that was well formed was not accepted.
type Refusal string

// The refusals, in the order in which a store checks them.
const (
	RefusedClosed Refusal = "closed"      // the session is closed
	RefusedEpoch  Refusal = "stale_epoch" // a newer epoch of the same producer has written
	RefusedReset  Refusal = "epoch_seq"   // a new epoch must start with sequence 0
	RefusedGap    Refusal = "gap"         // sequence numbers of the producer are missing
	RefusedSeq    Refusal = "seq"         // [Append.StreamSeq] is not above the last one
	RefusedOffset Refusal = "offset"      // the head is not [Append.Expect]
)

// An AppendError is the error of an append that was refused. It unwraps to an
// [*Error], so [KindOf] works on it: RefusedEpoch is [Forbidden], RefusedReset
// is [Invalid], all others are [Conflict].
type AppendError struct {
	Refusal Refusal
	Head    int64 // the head of the session when it refused
	Epoch   int64 // RefusedEpoch: the epoch that holds the producer's place
	Seq     int64 // RefusedGap: the sequence number that would be accepted
	Err     *Error
}

// Error implements error.
func (e *AppendError) Error() string { return e.Err.Error() }

// Unwrap returns the [*Error] with kind, message and hint.
func (e *AppendError) Unwrap() error { return e.Err }

// AtIndex returns err with the event to which it belongs: number i, from 0, of n.
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
