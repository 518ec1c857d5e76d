package a2a

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// A fault is an error of the protocol: a code and a reason that clients act on.
type fault struct {
	code   int    // of JSON-RPC
	reason string // of google.rpc.ErrorInfo
	status int    // of HTTP; 0 for that of the kind in the REST form, and for 200 in JSON-RPC
}

// These are the errors of JSON-RPC and of the protocol that this package answers with.
var (
	parseError     = fault{-32700, "PARSE_ERROR", 0}
	invalidRequest = fault{-32600, "INVALID_REQUEST", 0}
	methodNotFound = fault{-32601, "METHOD_NOT_FOUND", 0}
	invalidParams  = fault{-32602, "INVALID_PARAMS", 0}
	internalError  = fault{-32603, "INTERNAL_ERROR", 0}
	serverError    = fault{-32000, "SERVER_ERROR", 0}

	taskNotFound         = fault{-32001, "TASK_NOT_FOUND", 0}
	taskNotCancelable    = fault{-32002, "TASK_NOT_CANCELABLE", 0}
	pushNotSupported     = fault{-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", 0}
	unsupportedOperation = fault{-32004, "UNSUPPORTED_OPERATION", 0}
	contentNotSupported  = fault{-32005, "CONTENT_TYPE_NOT_SUPPORTED", 0}
	versionNotSupported  = fault{-32009, "VERSION_NOT_SUPPORTED", 0}

	// A body that is not said to be JSON is no request of JSON-RPC, so its status says so,
	// too.
	notJSON = fault{-32005, "CONTENT_TYPE_NOT_SUPPORTED", http.StatusUnsupportedMediaType}

	// Like the card of an agent that does not exist.
	noAgent = fault{-32000, "AGENT_NOT_FOUND", http.StatusNotFound}

	// A token that ends during a request is refused as one that has ended before: with the
	// status of HTTP, by which clients learn that they need another one.
	unauthenticated = fault{-32000, "UNAUTHENTICATED", http.StatusUnauthorized}
)

// byKind has the fault of an error that names none.
var byKind = map[tapedeck.Kind]fault{
	tapedeck.Invalid: invalidParams, tapedeck.TooLarge: invalidParams, tapedeck.Precondition: invalidParams,
	tapedeck.NotFound: taskNotFound, tapedeck.Gone: taskNotFound, tapedeck.Replaced: taskNotFound,
	tapedeck.Conflict: unsupportedOperation, tapedeck.Forbidden: unsupportedOperation, tapedeck.Unauthorized: unauthenticated,
	tapedeck.Unsupported: contentNotSupported,
	tapedeck.Limited:     serverError, tapedeck.Unavailable: serverError,
	tapedeck.Internal: internalError,
}

// A faultError is an error with a fault of its own.
type faultError struct {
	fault
	err error
}

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// of returns err as an error with f.
func (f fault) of(err error) error { return &faultError{f, err} }

// A failure is an error as a client sees it.
type failure struct {
	fault
	kind          tapedeck.Kind
	message, hint string
	rpcStatus     int // of an answer of JSON-RPC
}

// failure returns what the client sees of err.
func (c *call) failure(err error) failure {
	e, status := problem.Resolve(c.r, err, c.Logger)
	f, ok := byKind[e.Kind]
	if !ok {
		f = internalError
	}
	if own := (*faultError)(nil); errors.As(err, &own) {
		f = own.fault
	}
	if e.Kind == tapedeck.Limited || e.Kind == tapedeck.Unavailable {
		c.w.Header().Set("Retry-After", problem.RetryAfter(e))
	}
	if e.Kind == tapedeck.Unauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="tapedeck"`)
	}
	rpcStatus := cmp.Or(f.status, http.StatusOK)
	if f.status == 0 {
		f.status = status
	}
	return failure{f, e.Kind, e.Message, e.Hint, rpcStatus}
}

// sentence returns the message with the hint, because most clients show nothing else.
func (f *failure) sentence() string {
	if f.hint == "" {
		return f.message
	}
	return f.message + "; " + f.hint
}

// An errorInfo is a google.rpc.ErrorInfo.
type errorInfo struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

func (f *failure) details() []errorInfo {
	meta := map[string]string{"kind": string(f.kind)}
	if f.hint != "" {
		meta["hint"] = f.hint
	}
	return []errorInfo{{"type.googleapis.com/google.rpc.ErrorInfo", f.reason, "a2a-protocol.org", meta}}
}

// rpc returns the member "error" of a JSON-RPC answer.
func (f *failure) rpc(v version) any {
	var data any = f.details()
	if v == v03 {
		data = f.details()[0].Metadata
	}
	return struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{f.code, f.sentence(), data}
}

// rest returns the body of an answer in the REST form, a google.rpc.Status.
func (f *failure) rest() any {
	type status struct {
		Code    int         `json:"code"`
		Status  string      `json:"status"`
		Message string      `json:"message"`
		Details []errorInfo `json:"details"`
	}
	return map[string]status{"error": {f.status, grpcStatus[f.status], f.sentence(), f.details()}}
}

// grpcStatus names the statuses of HTTP as google.rpc.Code does.
var grpcStatus = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusGone: "NOT_FOUND", http.StatusMethodNotAllowed: "UNIMPLEMENTED", http.StatusConflict: "FAILED_PRECONDITION",
	http.StatusPreconditionFailed: "FAILED_PRECONDITION", http.StatusRequestEntityTooLarge: "INVALID_ARGUMENT",
	http.StatusUnsupportedMediaType: "INVALID_ARGUMENT", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL", http.StatusServiceUnavailable: "UNAVAILABLE",
}

// noTask is the error of a task that does not exist at this agent. It is the same
// whatever the reason, so that nobody learns of the tasks of others.
func noTask(id string) error {
	return taskNotFound.of(tapedeck.Errorf(tapedeck.NotFound, "there is no task %.300q", id))
}

// noPush is the error of a request for push notifications.
func noPush() error {
	return pushNotSupported.of(tapedeck.Errorf(tapedeck.Invalid, "this server sends no push notifications").
		WithHint("subscribe to the task; a stream resumes after any event"))
}

// encodeJSON encodes a value that can be encoded.
func encodeJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the types of this package and of the SDK have an encoding
	}
	return b
}
