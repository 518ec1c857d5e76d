package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// Limits of the pauses between attempts.
const (
	firstPause = 500 * time.Millisecond
	longest    = 30 * time.Second
	obeyed     = 2 * time.Minute // the longest pause that a server can ask for; if it asks for more, the call fails
)

// A passingError is a temporary error: the call can succeed if it is repeated.
type passingError struct {
	err   *tapedeck.Error // the error for users
	after time.Duration   // the pause that the server asks for; 0 if it does not
}

func (e *passingError) Error() string { return e.err.Error() }

func (e *passingError) Unwrap() error { return e.err }

func passing(err *tapedeck.Error) error { return &passingError{err: err} }

// plain returns the error for users: err without the information about retries.
func plain(err error) error {
	var p *passingError
	if errors.As(err, &p) {
		return p.err
	}
	return err
}

// retryable reports whether to repeat a call, and returns the pause before that.
func retryable(err error, attempt int) (time.Duration, bool) {
	var p *passingError
	if !errors.As(err, &p) || p.after > obeyed {
		return 0, false
	}
	pause := min(firstPause<<min(attempt, 10), longest)
	pause += time.Duration(rand.Int64N(int64(pause / 4))) // so that clients do not retry at the same moment
	return max(pause, p.after), true
}

// wait waits for d. It reports false if ctx is done first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func brokenOff(err error) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the model's answer broke off in the middle").Because(err)
}

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 64 << 10

// refusal returns the error of an answer whose status is not 200.
func refusal(resp *http.Response, w *secret.Words) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of the body is better than none
	said := explanation(body, w)
	if said == "" {
		said = http.StatusText(resp.StatusCode)
	}
	err := tapedeck.Errorf(kindOf(resp.StatusCode), "the model's provider answered %d: %s", resp.StatusCode, said)
	if !isPassing(resp.StatusCode) {
		return err
	}
	return &passingError{err, retryAfter(resp.Header.Get("Retry-After"))}
}

func kindOf(status int) tapedeck.Kind {
	switch status {
	case http.StatusTooManyRequests:
		return tapedeck.Limited
	case http.StatusRequestEntityTooLarge:
		return tapedeck.TooLarge
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return tapedeck.Invalid
	case http.StatusNotFound:
		return tapedeck.NotFound
	}
	return tapedeck.Unavailable // also for a refused key, because the key is the server's, not the user's
}

func isPassing(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooEarly ||
		status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// retryAfter decodes seconds or a date; 0 if s is neither.
func retryAfter(s string) time.Duration {
	if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 {
		return time.Duration(min(n, obeyed.Seconds()+1) * float64(time.Second))
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// inStream returns the error that a provider sends in the middle of a stream, when the
// status was already sent.
func inStream(raw json.RawMessage, w *secret.Words) error {
	var e struct {
		Code json.RawMessage `json:"code"`
		Type string          `json:"type"`
	}
	_ = json.Unmarshal(raw, &e) // the error can be a plain string
	code := strings.Trim(string(e.Code), `"`)
	status, _ := strconv.Atoi(code) // 0 for a word
	kind := tapedeck.Unavailable
	if status != 0 {
		kind = kindOf(status)
	}
	err := tapedeck.Errorf(kind, "the model's provider failed: %s", explanation(raw, w))
	for _, word := range []string{"overloaded", "rate_limit", "server_error", "timeout", "unavailable"} {
		if isPassing(status) || strings.Contains(e.Type+" "+code, word) {
			return passing(err)
		}
	}
	return err
}

// maxExplanation is how many characters of a provider's text an error has.
const maxExplanation = 500

// explanation returns the text of an error as one line. Providers use different members
// for it.
func explanation(body []byte, w *secret.Words) string {
	var e struct {
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	text := string(body)
	if s, ok := stringOf(body); ok {
		text = s.Whole()
	} else if json.Unmarshal(body, &e) == nil {
		switch {
		case isSet(e.Error):
			return explanation(e.Error, w)
		case e.Message != "":
			text = e.Message
		case e.Detail != "":
			text = e.Detail
		}
	}
	return oneLine(text, w)
}

func oneLine(text string, w *secret.Words) string {
	return strings.TrimSuffix(w.Line(text, maxExplanation), ".")
}
