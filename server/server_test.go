package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/server"
)

// echo answers with the path that it receives.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(r.URL.EscapedPath()))
})

func handler(change func(*server.Options)) http.Handler {
	o := server.Options{REST: echo, Task: echo, Channels: echo, Durable: echo, Version: "v1"}
	if change != nil {
		change(&o)
	}
	return server.New(o)
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:4747"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func TestEveryAnswerOfTheAPINamesItsGeneration(t *testing.T) {
	for path, want := range map[string]string{"/api/v1/sessions": "1", "/api/v1/nothing": "1", "/api/sessions": "1", "/v1/stream/x": "", "/healthz": ""} {
		if got := get(handler(nil), path).Header().Get("Tapedeck-Api"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestProtocolsAreMounted(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/sessions":        "/api/v1/sessions",
		"/api/sessions":           "/api/v1/sessions", // the alias
		"/api/sessions/a%2Fb":     "/api/v1/sessions/a%2Fb",
		"/v1/stream/x/y":          "/v1/stream/x/y",
		"/v1/stream":              "/v1/stream",
		"/api/v1/sessions/s/tail": "/api/v1/sessions/s/tail",

		"/sse/api/v1/sessions/a%2Fb": "/api/v1/sessions/a%2Fb",
		"/sse/v1/sessions":           "/api/v1/sessions",
		"/sse/api/sessions":          "/api/v1/sessions",
		"/sse/other":                 "/sse/other",

		"/channels/api/sessions/a%2Fb": "/api/v1/sessions/a%2Fb",
		"/channels/v1/sessions":        "/api/v1/sessions",
		"/channels/other":              "/channels/other",
	} {
		if got := get(handler(nil), path); got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", path, got.Code, got.Body, want)
		}
	}
}

// TestRoutingIsThatOfTheMux: most requests reach their protocol without the mux. The
// result is the same, however a path is written.
func TestRoutingIsThatOfTheMux(t *testing.T) {
	stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("stream " + r.URL.EscapedPath())) })
	mux := http.NewServeMux()
	mux.Handle("/v1/stream", stream)
	mux.Handle("/v1/stream/", stream)
	mux.Handle("/api/v1/", echo)
	h := handler(func(o *server.Options) { o.Durable = stream })
	for _, path := range []string{
		"/v1/stream", "/v1/stream/", "/v1/stream/a", "/v1/stream/a/", "/v1/stream/a/b?c=//d", "/v1/stream/%C3%A4",
		"/v1/stream/.a", "/v1/stream/a/.b", "/v1/stream/a.", "/v1/stream/a../b",
		"/v1/stream/%2e%2e/a", "/v1/stream/a%2Fb", "/v1/stream/%2F", "/v1/stream%2Fa", "/v1%2Fstream/a", "/%761/stream/a", "/v1/streams/a",
		"/api/v1/", "/api/v1/a?b=c", "/api/v1/a/", "/api/v1/a%2Fb", "/api/v1/.a", "/api%2Fv1/a", "/%61pi/v1/a",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequest(method, path, nil)
			r.Host = "localhost"
			want, got := httptest.NewRecorder(), httptest.NewRecorder()
			mux.ServeHTTP(want, r)
			h.ServeHTTP(got, r.Clone(t.Context()))
			if got.Code != want.Code || want.Code == 200 && got.Body.String() != want.Body.String() {
				t.Errorf("%s %s: %d %q, want %d %q", method, path, got.Code, got.Body, want.Code, want.Body)
			}
		}
	}
}

// TestErrorsAreJSON: every error has the form of an error of the API, wherever it
// comes from, and no path is redirected because it is not clean.
func TestErrorsAreJSON(t *testing.T) {
	for path, want := range map[string]int{
		"/v1/stream//": 400, "/v1/stream//a": 400, "/v1/stream/a//b": 400, "/v1/stream/a//": 400,
		"/v1/stream/.": 400, "/v1/stream/..": 400, "/v1/stream/./a": 400, "/v1/stream/../a": 400, "/v1/stream/a/../b?c=d": 400,
		"/v1/stream/%2e%2e/a": 400, "/v1/stream/a/": 400,
		"//v1/stream/a": 404, "/v1//stream/a": 404, "/v1/nothing": 404, "/nothing": 404, "/a/../b": 404, "/sse/nothing": 404, "/sse/../x": 404, "/channels/../x": 404, "/healthz/x": 404,
	} {
		for _, h := range []http.Handler{whole(nil), whole(func(o *server.Options) { o.Screen = screenFiles(map[string]string{"index.html": indexHTML}) })} {
			w := get(h, path)
			var body struct {
				Error struct{ Kind, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != want || body.Error.Kind == "" || body.Error.Message == "" {
				t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
			}
		}
	}
}

// TestEmptyIDs: a client that has lost an id gets an error, and no redirect.
func TestEmptyIDs(t *testing.T) {
	for _, path := range []string{
		"/api/v1/sessions//events", "/api/sessions//events?from=1", "/sse/api/v1/sessions//events", "/api/v1/sessions//permissions//",
		"/api/v1/../x", "/api/v1/sessions/./events", "/api/v1/a/..", "/api/v1/sessions//a%2Fb", "/api//v1/sessions",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := send(shared(app), method, path)
			if w.Code != 404 || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") || !strings.Contains(w.Body.String(), `"not_found"`) {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, w.Header(), w.Body)
			}
		}
	}
}

// TestRootsDoNotRedirect: at the root of an endpoint there is nothing, with the slash and
// without.
func TestRootsDoNotRedirect(t *testing.T) {
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := whole(func(o *server.Options) {
		o.AGUI, o.AISDK, o.A2A, o.Task, o.Channels = nothing, nothing, nothing, nothing, nothing
	})
	for _, path := range []string{"/a2a", "/agui", "/aisdk", "/api", "/api/v1", "/api/a2a", "/sse", "/channels"} {
		for _, method := range []string{"GET", "POST"} {
			w := send(h, method, path)
			if w.Code != 404 || !strings.Contains(w.Body.String(), `there is nothing at \"`+path) {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, w.Header(), w.Body)
			}
		}
		if w := get(h, path+"/x"); w.Code >= 300 && w.Code < 400 {
			t.Errorf("%s/x: %d", path, w.Code)
		}
	}
}

// TestForeignPagesAreKeptOut: every page in a browser on this machine can reach the
// loopback, so the server must check the origin of a request.
func TestForeignPagesAreKeptOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*server.Options)
		header []string
		want   int
	}{
		{"a program", nil, nil, 200},
		{"our own page", nil, []string{"Origin", "http://127.0.0.1:4747"}, 200},
		{"a page of another site", nil, []string{"Origin", "https://evil.example"}, 403},
		{"a page of another port", nil, []string{"Origin", "http://127.0.0.1:9999"}, 403},
		{"a sandboxed page", nil, []string{"Origin", "null"}, 403},
		{"an image on another site's page", nil, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a link on another site's page", nil, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"an origin that was allowed", func(o *server.Options) { o.AllowOrigins = []string{"https://app.example"} }, []string{"Origin", "https://app.example"}, 200},
		{"another one", func(o *server.Options) { o.AllowOrigins = []string{"https://app.example"} }, []string{"Origin", "https://app.example.evil"}, 403},
		{"all origins", func(o *server.Options) { o.AllowOrigins = []string{"*"} }, []string{"Origin", "https://any.example"}, 200},
		{"a name that points here", nil, []string{"Host", "rebound.example:4747"}, 403},
		{"localhost", nil, []string{"Host", "localhost:4747"}, 200},
		{"IPv6", nil, []string{"Host", "[::1]:4747"}, 200},
		{"IPv4 in IPv6", nil, []string{"Host", "[::ffff:127.0.0.1]:4747"}, 200},
		{"an address of a zone", nil, []string{"Host", "[::1%lo]:4747"}, 403},
		{"any name, when we listen for others", func(o *server.Options) { o.AnyHost = true }, []string{"Host", "tapedeck.example"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := get(handler(c.change), "/api/v1/sessions", c.header...)
			if rec.Code != c.want {
				t.Fatalf("got %d %s, want %d", rec.Code, rec.Body, c.want)
			}
			if c.want != 403 {
				return
			}
			var body struct {
				Error struct{ Kind, Message string }
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || body.Error.Kind != "forbidden" || body.Error.Message == "" {
				t.Errorf("the refusal does not say why: %s", rec.Body)
			}
		})
	}
}

// TestProbesUseAnyName: a probe names the server by its address, whatever names others use.
func TestProbesUseAnyName(t *testing.T) {
	h := handler(func(o *server.Options) { o.AllowHosts = []string{"deck.example"} })
	for _, c := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/healthz", nil, 200}, {"GET", "/readyz", nil, 200}, {"HEAD", "/readyz", nil, 200},
		{"POST", "/readyz", nil, 403}, {"GET", "/readyz/x", nil, 403}, {"GET", "//readyz", nil, 403}, {"GET", "/", nil, 403}, {"GET", "/api/v1/sessions", nil, 403},
		{"GET", "/healthz", []string{"Origin", "http://rebound.example"}, 403},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = "10.1.2.3:4747"
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != c.want {
			t.Errorf("%s %s %q: %d, want %d", c.method, c.path, c.header, rec.Code, c.want)
		}
	}
}

// TestStreamsAreNoScripts: no page can run the content of a stream as a script with the
// server's origin, whatever its content type.
func TestStreamsAreNoScripts(t *testing.T) {
	h := handler(nil)
	for dest, want := range map[string]int{
		"script": 403, "serviceworker": 403, "worker": 403, "style": 403, "embed": 403,
		"empty": 200, "document": 200, "image": 200, "": 200,
	} {
		for _, path := range []string{"/v1/stream/a", "/v1/stream/%61", "/api/v1/sessions", "/api/sessions", "/sse/api/sessions", "/channels/api/sessions"} {
			header := []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", dest}
			if dest == "" {
				header = nil
			}
			if rec := get(h, path, header...); rec.Code != want {
				t.Errorf("%s as %q: %d, want %d", path, dest, rec.Code, want)
			}
		}
	}
	if rec := get(h, "/", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "script"); rec.Code == 403 {
		t.Error("the screen's own scripts are refused")
	}
}

func TestHealth(t *testing.T) {
	if rec := get(handler(nil), "/healthz"); rec.Code != 200 {
		t.Errorf("healthz: %d", rec.Code)
	}
	broken := handler(func(o *server.Options) {
		o.Ready = func(context.Context) error { return errors.New("the disk of host db-7 is full") }
	})
	rec := get(broken, "/readyz")
	if rec.Code != 503 || strings.Contains(rec.Body.String(), "db-7") {
		t.Errorf("readyz: %d %q; it must say no and not why", rec.Code, rec.Body)
	}
	if rec := get(broken, "/healthz"); rec.Code != 200 {
		t.Errorf("healthz of a server that is not ready: %d; it lives", rec.Code)
	}
}

func TestFrontPage(t *testing.T) {
	rec := get(handler(func(o *server.Options) { o.Version = "<script>" }), "/")
	if rec.Code != 200 || strings.Contains(rec.Body.String(), "<script>") {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	if csp := rec.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	if rec := get(handler(nil), "/nothing"); rec.Code != 404 {
		t.Errorf("an unknown path: %d", rec.Code)
	}
}

func TestAPanicEndsTheRequestOnly(t *testing.T) {
	var log strings.Builder
	h := handler(func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.REST = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") })
	})
	srv := httptest.NewServer(h)
	defer srv.Close()
	if resp, err := http.Get(srv.URL + "/api/v1/x"); err == nil {
		resp.Body.Close()
		t.Errorf("got %s, want a broken connection", resp.Status)
	}
	if resp, err := http.Get(srv.URL + "/healthz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the server does not answer: %v", err)
	}
	srv.Close() // waits until everything was logged
	if !strings.Contains(log.String(), "secret") {
		t.Error("the operator is not told")
	}
}
