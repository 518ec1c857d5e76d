package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/server"
)

// notes is a meter that writes down its calls.
type notes []string

func (n *notes) Began(p string)   { *n = append(*n, "began "+p) }
func (n *notes) Streams(p string) { *n = append(*n, "streams "+p) }
func (n *notes) Ended(p string, status int, _ time.Duration, stream bool) {
	*n = append(*n, fmt.Sprintf("ended %s %d %t", p, status, stream))
}

func TestEachRequestIsMeasured(t *testing.T) {
	for path, want := range map[string]notes{
		"/api/v1/sessions": {"began http", "ended http 200 false"},
		"/api/v1/stream":   {"began http", "streams http", "ended http 200 true"},
		"/api/v1/early":    {"began http", "ended http 404 false"},
		"/api/v1/panic":    {"began http", "ended http 500 false"},
		"/api/v1/empty":    {"began http", "ended http 200 false"},
		"/v1/stream/x":     {"began durable-streams", "ended durable-streams 200 false"},
		"/sse/api/v1/x":    {"began task", "ended task 200 false"},
		"/nothing":         {"began other", "ended other 404 false"},
	} {
		var got notes
		h := handler(func(o *server.Options) {
			o.Meter = &got
			o.REST = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch strings.TrimPrefix(r.URL.Path, "/api/v1/") {
				case "stream":
					w.Header().Set("Content-Type", "text/event-stream")
					_ = http.NewResponseController(w).Flush()
				case "early":
					w.WriteHeader(http.StatusEarlyHints)
					w.WriteHeader(http.StatusNotFound)
				case "panic":
					panic("x")
				case "empty":
				default:
					echo(w, r)
				}
			})
		})
		func() {
			defer func() { _ = recover() }()
			get(h, path)
		}()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// TestRequestIDs: the id of a client is answered and is in the log. One that could be anything
// else than an id is replaced by one of the server.
func TestRequestIDs(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "abc-1.2:3/4+5=6@7_8": "abc-1.2:3/4+5=6@7_8", "a b": "", "a\"b": "", "é": "", strings.Repeat("x", 128): strings.Repeat("x", 128), strings.Repeat("x", 129): "",
	} {
		var log bytes.Buffer
		h := handler(func(o *server.Options) {
			o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions?token=secret", nil)
		r.Host = "127.0.0.1"
		r.Header["X-Request-Id"] = []string{id}
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header().Get("X-Request-Id")
		if isOurs := strings.HasPrefix(got, "req_"); want != "" && got != want || want == "" && !isOurs || !strings.Contains(log.String(), `"id":"`+got+`"`) {
			t.Errorf("%q: answered %q\n%s", id, got, &log)
		}
		if line := log.String(); !strings.Contains(line, `"path":"/api/v1/sessions"`) || strings.Contains(line, "secret") {
			t.Errorf("%q: the log has\n%s", id, line)
		}
	}
}

func TestTwoRequestIDsAreNone(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	r.Host = "127.0.0.1"
	r.Header["X-Request-Id"] = []string{"a", "b"}
	w := httptest.NewRecorder()
	handler(nil).ServeHTTP(w, r)
	if got := w.Header()["X-Request-Id"]; got != nil {
		t.Errorf("answered %q", got)
	}
}
