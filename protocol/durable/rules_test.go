package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

// These tests check rules that the protocol's own suite does not check.

// ask sends a request. Headers come in pairs.
func ask(t testing.TB, handler http.Handler, method, path string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "/v1/stream/"+path, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

// must is ask for a request that must be answered with status.
func must(t testing.TB, status int, handler http.Handler, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	resp := ask(t, handler, method, path, strings.NewReader(body), headers...)
	if resp.StatusCode != status {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: got %d %s, want %d", method, path, resp.StatusCode, b, status)
	}
	return resp
}

// readAll reads a stream page by page and returns the pages in a row.
func readAll(t testing.TB, handler http.Handler, path string) string {
	t.Helper()
	var all strings.Builder
	for offset := "-1"; ; {
		resp := must(t, 200, handler, "GET", path+"?offset="+offset, "")
		all.WriteString(textOf(t, resp))
		if resp.Header.Get("Stream-Up-To-Date") != "" {
			return all.String()
		}
		offset = resp.Header.Get("Stream-Next-Offset")
	}
}

func textOf(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var asText = []string{"Content-Type", "text/plain"}
var asJSON = []string{"Content-Type", "application/json"}

func newHandler(change func(*durable.Options)) http.Handler {
	o := options(memory.New(memory.Options{}))
	if change != nil {
		change(&o)
	}
	return durable.New(o)
}

// The ETags of different streams, offsets and states differ, so that a cache never confuses
// them.
func TestETagNamesStreamPositionAndClosure(t *testing.T) {
	handler := newHandler(nil)
	seen := map[string]string{}
	note := func(what, path string) {
		tag := must(t, 200, handler, "GET", path, "").Header.Get("ETag")
		if before, ok := seen[tag]; ok {
			t.Errorf("%s has the tag %s of %s", what, tag, before)
		}
		seen[tag] = what
	}
	must(t, 201, handler, "PUT", "a", "12", asText...)
	must(t, 201, handler, "PUT", "b", "12", asText...)
	note("a", "a")
	note("b", "b")
	note("a from its end", "a?offset=0000000000000001_0000000000000000")
	must(t, 204, handler, "POST", "a", "", "Stream-Closed", "true")
	note("a when closed", "a")
	note("the end of a when closed", "a?offset=0000000000000001_0000000000000000")
	must(t, 204, handler, "DELETE", "a", "")
	must(t, 201, handler, "PUT", "a", "12", asText...)
	note("another a", "a")
}

func TestTooLargeBodies(t *testing.T) {
	const limit = 600 << 10 // more than a reader allocates at once
	handler := newHandler(func(o *durable.Options) { o.MaxBody = limit })
	must(t, 201, handler, "PUT", "a", "", asText...)
	for _, size := range []int{1, 256 << 10, 256<<10 + 1, limit, limit + 1, limit * 2} {
		body := strings.Repeat("x", size)
		want := 204
		if size > limit {
			want = 413
		}
		if got := ask(t, handler, "POST", "a", strings.NewReader(body), asText...); got.StatusCode != want {
			t.Errorf("%d bytes: got %d, want %d", size, got.StatusCode, want)
		}
		chunked := struct{ io.Reader }{strings.NewReader(body)} // of unknown length
		if got := ask(t, handler, "POST", "a", chunked, asText...); got.StatusCode != want {
			t.Errorf("%d bytes, chunked: got %d, want %d", size, got.StatusCode, want)
		}
	}
	got := len(readAll(t, handler, "a"))
	if want := 2 * (1 + 256<<10 + 256<<10 + 1 + limit); got != want {
		t.Errorf("%d bytes are stored, want %d", got, want)
	}
	short := httptest.NewRequest("POST", "/v1/stream/a", strings.NewReader("abc"))
	short.ContentLength = 4
	short.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, short)
	if w.Code != 400 {
		t.Errorf("a body that ends early: got %d, want 400", w.Code)
	}
}

func TestArrayOf100000Messages(t *testing.T) {
	handler := newHandler(nil)
	must(t, 201, handler, "PUT", "a", "", asJSON...)
	const n = 100_000
	resp := must(t, 204, handler, "POST", "a", "["+strings.Repeat(`{"i":1},`, n-1)+`{"i":2}]`, asJSON...)
	if got, want := resp.Header.Get("Stream-Next-Offset"), fmt.Sprintf("%016d_%016d_1", n, 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := strings.Count(readAll(t, handler, "a"), "{"); got != n {
		t.Errorf("read %d messages, want %d", got, n)
	}
}

// Reads and writes keep a stream alive, HEAD does not.
func TestTimeToLiveSlides(t *testing.T) {
	for _, c := range []struct {
		name  string
		act   func(t *testing.T, handler http.Handler)
		lives bool
	}{
		{"nothing", func(*testing.T, http.Handler) {}, false},
		{"HEAD", func(t *testing.T, d http.Handler) { must(t, 200, d, "HEAD", "a", "") }, false},
		{"GET", func(t *testing.T, d http.Handler) { must(t, 200, d, "GET", "a", "") }, true},
		{"GET of the tail", func(t *testing.T, d http.Handler) { must(t, 200, d, "GET", "a?offset=now", "") }, true},
		{"POST", func(t *testing.T, d http.Handler) { must(t, 204, d, "POST", "a", "x", asText...) }, true},
		{"close", func(t *testing.T, d http.Handler) { must(t, 204, d, "POST", "a", "", "Stream-Closed", "true") }, true},
		{"PUT again", func(t *testing.T, d http.Handler) {
			must(t, 200, d, "PUT", "a", "", "Content-Type", "text/plain", "Stream-TTL", "60")
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := noon
			o := options(memory.New(memory.Options{Now: func() time.Time { return now }}))
			handler := durable.New(o)
			must(t, 201, handler, "PUT", "a", "", "Content-Type", "text/plain", "Stream-TTL", "60")
			now = now.Add(40 * time.Second)
			c.act(t, handler)
			now = now.Add(40 * time.Second)
			want := 404
			if c.lives {
				want = 200
			}
			must(t, want, handler, "HEAD", "a", "")
		})
	}
}

// An append of a producer that failed can be sent again, and one that succeeded is not
// stored twice: data and numbers are stored together.
func TestProducerNumbersFailWithTheirData(t *testing.T) {
	fail := error(nil)
	o := options(memory.New(memory.Options{FailCommit: func() error { return fail }}))
	handler := durable.New(o)
	must(t, 201, handler, "PUT", "a", "", asJSON...)
	producer := append([]string{"Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0"}, asJSON...)
	fail = errors.New("disk full")
	must(t, 503, handler, "POST", "a", "1", producer...)
	fail = nil
	must(t, 200, handler, "POST", "a", "1", producer...)
	must(t, 204, handler, "POST", "a", "1", producer...)
	if got := textOf(t, must(t, 200, handler, "GET", "a", "")); got != "[1]" {
		t.Errorf("got %s, want [1]", got)
	}
}

// A request that is given up, such as when the server stops, does not look like a success.
func TestRequestsGivenUpFail(t *testing.T) {
	handler := newHandler(nil)
	must(t, 201, handler, "PUT", "a", "", asText...)
	ctx, cut := context.WithCancel(t.Context())
	cut()
	r := httptest.NewRequest("POST", "/v1/stream/a", strings.NewReader("x")).WithContext(ctx)
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != 503 {
		t.Errorf("got %d, want 503", w.Code)
	}
}

// The log has the text of an internal error, and the client does not get it.
func TestInternalErrorsTellNothing(t *testing.T) {
	for _, err := range []error{
		errors.New("secret"),
		tapedeck.Errorf(tapedeck.Internal, "row 7 of the secret").WithHint("secret"),
		tapedeck.Errorf(tapedeck.Unavailable, "the database cannot be read now").Because(errors.New("secret")),
	} {
		var log bytes.Buffer
		o := options(newMemory())
		o.Store, o.Logger = faulty{o.Store.(*hub.Hub), err}, slog.New(slog.NewTextHandler(&log, nil))
		w := httptest.NewRecorder()
		durable.New(o).ServeHTTP(w, httptest.NewRequest("GET", "/v1/stream/a", nil))
		if w.Code < 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret") {
			t.Errorf("got %d %s, and the log has %s", w.Code, w.Body, &log)
		}
	}
}

type faulty struct {
	*hub.Hub
	err error
}

func (f faulty) Head(context.Context, string) (tapedeck.Session, error) {
	return tapedeck.Session{}, f.err
}

// Without an engine, sessions can be read but not written.
func TestSessionsWithoutEngine(t *testing.T) {
	o := options(memory.New(memory.Options{}))
	o.Verbs = nil
	handler := durable.New(o)
	must(t, 405, handler, "PUT", "sessions/s", "")
	must(t, 404, handler, "GET", "sessions/s", "")
}

// Records that are longer than a page are sent in pieces. Text is not divided within a
// character, which a reader of SSE would lose.
func TestLongRecordsAreDivided(t *testing.T) {
	for _, c := range []struct{ contentType, body string }{
		{"text/plain", strings.Repeat("aé€😀", 100)},
		{"text/plain", strings.Repeat("\x80", 99)}, // no valid text
		{"application/octet-stream", strings.Repeat("\x00\xff\x80", 99)},
	} {
		for _, size := range []int{1, 5, 64, 4096} {
			handler := newHandler(func(o *durable.Options) { o.PageBytes = size })
			must(t, 201, handler, "PUT", "a", c.body, "Content-Type", c.contentType)
			must(t, 204, handler, "POST", "a", "end", "Content-Type", c.contentType, "Stream-Closed", "true")
			if got := readAll(t, handler, "a"); got != c.body+"end" {
				t.Errorf("pages of %d bytes: got %q", size, got)
			}
			live := textOf(t, must(t, 200, handler, "GET", "a?offset=-1&live=sse", ""))
			if got := decodeEvents(t, live, c.contentType != "text/plain"); got != c.body+"end" {
				t.Errorf("events of %d bytes: got %q", size, got)
			}
			for event := range strings.SplitSeq(live, "\n\n") {
				if utf8.ValidString(c.body) && size >= utf8.UTFMax && !utf8.ValidString(event) {
					t.Errorf("an event of %d bytes ends within a character: %q", size, event)
				}
			}
		}
	}
}

// A repeated PUT conflicts after its stream was closed, and with another lifetime.
func TestRepeatedCreation(t *testing.T) {
	handler := newHandler(nil)
	base := []string{"Content-Type", "text/plain; charset=utf-8", "Stream-TTL", "60"}
	must(t, 201, handler, "PUT", "a", "x", base...)
	must(t, 200, handler, "PUT", "a", "x", base...)
	must(t, 200, handler, "PUT", "a", "other", "Content-Type", "TEXT/PLAIN", "Stream-TTL", "60")
	must(t, 409, handler, "PUT", "a", "", "Content-Type", "text/plain")
	must(t, 409, handler, "PUT", "a", "", "Content-Type", "text/html", "Stream-TTL", "60")
	must(t, 409, handler, "PUT", "a", "", append([]string{"Stream-Closed", "true"}, base...)...)
	must(t, 204, handler, "POST", "a", "", "Stream-Closed", "true")
	must(t, 409, handler, "PUT", "a", "", base...)
	must(t, 200, handler, "PUT", "a", "", append([]string{"Stream-Closed", "true"}, base...)...)
	if got := textOf(t, must(t, 200, handler, "GET", "a", "")); got != "x" {
		t.Errorf("the first body is not stored: %q", got)
	}
}

// The headers that keep a browser from running the content of a stream.
func TestBrowserHeaders(t *testing.T) {
	handler := newHandler(nil)
	must(t, 201, handler, "PUT", "a", "<script>", "Content-Type", "text/html")
	h := must(t, 200, handler, "GET", "a", "").Header
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Content-Security-Policy":      "sandbox",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	h = must(t, 204, handler, "POST", "a", "x", "Content-Type", "text/html", "Origin", "https://example.org").Header
	if h.Get("Access-Control-Allow-Origin") != "" || h.Get("X-Content-Type-Options") != "nosniff" { // package server sets those of CORS
		t.Errorf("got %v", h)
	}
}

func TestLocationIsAbsolute(t *testing.T) {
	handler := newHandler(nil)
	r := httptest.NewRequest("PUT", "http://tape.example/v1/stream/a%20b/%C3%A9", nil)
	r.Header.Set("X-Forwarded-Proto", "https")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if got, want := w.Header().Get("Location"), "https://tape.example/v1/stream/a%20b/%C3%A9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, 201, handler, "PUT", "fork", "", "Stream-Forked-From", "/v1/stream/a%20b/%C3%A9")
}
