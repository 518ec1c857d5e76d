package problem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// answer writes an error and returns the response.
func answer(t *testing.T, r *http.Request, err error) (w *httptest.ResponseRecorder, body Body, log string) {
	t.Helper()
	var out bytes.Buffer
	w = httptest.NewRecorder()
	Write(w, r, err, slog.New(slog.NewTextHandler(&out, nil)))
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return w, body, out.String()
}

func get() *http.Request { return httptest.NewRequest(http.MethodGet, "/x", nil) }

func TestDocsHaveEveryKindOfError(t *testing.T) {
	doc, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, status := range statuses {
		if row := fmt.Sprintf("| `%s` | %d |", kind, status); !bytes.Contains(doc, []byte(row)) {
			t.Errorf("docs/http.md has no row %s", row)
		}
	}
}

// TestKinds: each kind has its status, and a wrapped error keeps its sentence and its
// hint.
func TestKinds(t *testing.T) {
	for kind, status := range statuses {
		if kind == tapedeck.Internal {
			continue
		}
		w, body, _ := answer(t, get(), fmt.Errorf("wrapped: %w", tapedeck.Errorf(kind, "it is so").WithHint("do so")))
		if want := (Detail{Kind: kind, Message: "it is so", Hint: "do so"}); w.Code != status || !reflect.DeepEqual(body.Error, want) {
			t.Errorf("%s: %d %+v", kind, w.Code, body)
		}
		retry := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
		if (w.Header().Get("Retry-After") != "") != retry || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s: %v", kind, w.Header())
		}
	}
}

// TestKindOfStatus: the status of each kind leads back to it, and every other status of an
// error to one that fits.
func TestKindOfStatus(t *testing.T) {
	for _, kind := range Kinds() {
		want := kind
		if kind == tapedeck.Replaced {
			want = tapedeck.Gone // they have the same status
		}
		if got := KindOf(Status(kind)); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
	for status, want := range map[int]tapedeck.Kind{101: "", 200: "", 304: "", 405: tapedeck.Invalid, 501: tapedeck.Unsupported, 502: tapedeck.Internal} {
		if got := KindOf(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}

// TestInternalErrors: the log has the cause of an internal error under the id that the
// client receives. The client does not see the cause.
func TestInternalErrors(t *testing.T) {
	secret := errors.New("the secret")
	for name, err := range map[string]error{
		"no kind":      secret,
		"internal":     tapedeck.Errorf(tapedeck.Internal, "row 7 of the secret"),
		"unknown kind": tapedeck.Errorf("other", "the secret"),
		"unavailable":  tapedeck.Errorf(tapedeck.Unavailable, "the store cannot be read").Because(secret),
	} {
		w, body, log := answer(t, get(), err)
		_, rest, _ := strings.Cut(body.Error.Message, "(id ")
		id, _, hasID := strings.Cut(rest, ")")
		if w.Code < 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log, "secret") || hasID && !strings.Contains(log, id) {
			t.Errorf("%s: %d %s\nlog: %s", name, w.Code, w.Body, log)
		}
	}
}

// TestGivenUp: if the server stops, or the client has disconnected, the answer is no
// success, and the log has no error.
func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, body, log := answer(t, get().WithContext(ctx), fmt.Errorf("reading: %w", context.Canceled))
	if w.Code != http.StatusServiceUnavailable || body.Error.Kind != tapedeck.Unavailable || log != "" {
		t.Errorf("%d %s\nlog: %s", w.Code, w.Body, log)
	}
}

func TestStatusOtherThanThatOfTheKind(t *testing.T) {
	for _, c := range []struct {
		err    func(http.ResponseWriter, *http.Request) error
		status int
		kind   tapedeck.Kind
	}{
		{func(w http.ResponseWriter, r *http.Request) error { return MethodNotAllowed(w, r, "GET", "HEAD") }, 405, tapedeck.Invalid},
		{func(http.ResponseWriter, *http.Request) error { return &http.MaxBytesError{Limit: 7} }, 413, tapedeck.TooLarge},
		{func(http.ResponseWriter, *http.Request) error { return NoSuchPath(strings.Repeat("ä", 500)) }, 404, tapedeck.NotFound},
	} {
		w := httptest.NewRecorder()
		var body Body
		Write(w, get(), c.err(w, get()), slog.New(slog.DiscardHandler))
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != c.status || body.Error.Kind != c.kind || w.Body.Len() > 700 {
			t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.kind)
		}
	}
}
