package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// The codes of errors. Those from codeInternal on are ours, the others the protocol's.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeNotFound    = "SUBSCRIPTION_NOT_FOUND"
	codeExists      = "SUBSCRIPTION_ALREADY_EXISTS"
	codeURL         = "WEBHOOK_URL_REJECTED"
	codeToken       = "TOKEN_INVALID"
	codeExpired     = "TOKEN_EXPIRED"
	codeFenced      = "FENCED"
	codeClaimed     = "ALREADY_CLAIMED"
	codeNoWork      = "NO_PENDING_WORK"
	codeOffset      = "INVALID_OFFSET"
	codeInternal    = "INTERNAL"
	codeUnavailable = "UNAVAILABLE"
	codeTooLarge    = "TOO_LARGE"
	codeLimit       = "LIMIT_EXCEEDED"
	codeMethod      = "METHOD_NOT_ALLOWED"
)

var statuses = map[string]int{
	codeInvalid: http.StatusBadRequest, codeNotFound: http.StatusNotFound, codeExists: http.StatusConflict,
	codeURL: http.StatusBadRequest, codeToken: http.StatusUnauthorized, codeExpired: http.StatusUnauthorized,
	codeFenced: http.StatusConflict, codeClaimed: http.StatusConflict, codeNoWork: http.StatusConflict,
	codeOffset: http.StatusConflict, codeInternal: http.StatusInternalServerError, codeUnavailable: http.StatusServiceUnavailable,
	codeTooLarge: http.StatusRequestEntityTooLarge, codeLimit: http.StatusTooManyRequests, codeMethod: http.StatusMethodNotAllowed,
}

// A failure is an error in the form of the protocol.
type failure struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Hint       string `json:"hint,omitempty"`
	Holder     string `json:"current_holder,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

func (f *failure) Error() string { return f.Message }

func failed(code, format string, args ...any) *failure {
	return &failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *failure { return failed(codeInvalid, format, args...) }

func tooMany(format string, args ...any) *failure { return failed(codeLimit, format, args...) }

func (f *failure) hint(format string, args ...any) *failure {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// because appends the message of another error.
func (f *failure) because(err error) *failure {
	f.Message += ": " + err.Error()
	return f
}

func errNoSubscription(id string) *failure {
	return failed(codeNotFound, "there is no subscription %.128q", id).hint("PUT it first")
}

// checkURL refuses the URL of a webhook that no request would be sent to.
func (d *Dispatcher) checkURL(url string) error {
	var e *tapedeck.Error
	if err := d.client.Check(url); errors.As(err, &e) {
		return failed(codeURL, "%s", e.Message).hint("%s", e.Hint)
	}
	return nil
}

// fail answers with an error.
func (d *Dispatcher) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := d.explain(r, err)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch f.Code {
	case codeUnavailable, codeLimit:
		h.Set("Retry-After", "1")
	case codeToken, codeExpired:
		h.Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, statuses[f.Code], map[string]*failure{"error": f})
}

// explain returns what the client may know of an error.
func (d *Dispatcher) explain(r *http.Request, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if refused, _ := intake.Refused(err); refused != nil {
		return failed(codeUnavailable, "%s", refused.Message).hint("%s", refused.Hint)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failed(codeUnavailable, "the server is stopping, or has just started").hint("try again")
	}
	var e *tapedeck.Error
	if errors.As(err, &e) && e.Kind == tapedeck.Unavailable {
		d.options.Logger.Warn("a request for a subscription could not be served", "path", secret.Path(r), "error", e, "cause", e.Err)
		return failed(codeUnavailable, "%s", e.Message).hint("%s", e.Hint)
	}
	id := problem.Log(r, err, d.options.Logger)
	return failed(codeInternal, "internal error (id %s)", id).hint("the server's log has more under this id")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // no type here has a value that cannot be encoded
		status, b = http.StatusInternalServerError, nil
	}
	h := w.Header()
	if h["Content-Type"] == nil {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // if the client has disconnected, nobody needs the answer
}
