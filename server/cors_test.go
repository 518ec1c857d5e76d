package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/protocol/task"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
)

const app = "https://app.example"

// shared is a server with its real protocols that allows pages of some origins.
func shared(origins ...string) http.Handler {
	return whole(func(o *server.Options) { o.AllowOrigins = origins })
}

// whole is a server with its real protocols.
func whole(change func(*server.Options)) http.Handler {
	h := hub.New(memory.New(memory.Options{}))
	tasks := task.New(task.Options{Sessions: h})
	api := rest.New(rest.Options{Sessions: h, Verbs: engine.New(engine.Options{Store: h}), Task: tasks})
	return handler(func(o *server.Options) {
		o.REST, o.Durable, o.Task = api, durable.New(durable.Options{Store: h}), task.Default(tasks, api)
		if change != nil {
			change(o)
		}
	})
}

func send(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:4747"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// paths are examples of all kinds of answers, including errors.
var paths = []string{
	"/api/v1/sessions/none", "/api/sessions/none", "/api/v1/nothing", "/api/v1/sessions/none/stream", "/api/v1/sessions/%2F",
	"/v1/stream/none", "/v1/stream", "/v1/nothing", "/healthz", "/readyz", "/", "/s/none", "/api/v1/../x",
}

// TestAllowedPagesReadEveryAnswer: without the headers, an answer looks to a page as if the
// server did not run.
func TestAllowedPagesReadEveryAnswer(t *testing.T) {
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			h := send(shared("https://other.example", app), method, path, "Origin", app).Header()
			if got := h.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != app {
				t.Errorf("%s %s: allows %q", method, path, got)
			}
			if got := h.Values("Timing-Allow-Origin"); len(got) != 1 || got[0] != app {
				t.Errorf("%s %s: allows %q to see the protocol", method, path, got)
			}
			if h.Get("Access-Control-Allow-Credentials") != "true" || !strings.Contains(strings.Join(h.Values("Vary"), ", "), "Origin") {
				t.Errorf("%s %s: %v", method, path, h)
			}
			for _, name := range []string{"ETag", "Location", "Retry-After", "Allow", "Content-Disposition", "Stream-Next-Offset", "Stream-Closed", "Producer-Expected-Seq", "Tapedeck-Api", "Tapedeck-Instance"} {
				if !strings.Contains(h.Get("Access-Control-Expose-Headers"), name) {
					t.Errorf("%s %s: %s is not exposed", method, path, name)
				}
			}
		}
	}
}

// TestPreflight: a browser sends a preflight before every request that is not simple.
func TestPreflight(t *testing.T) {
	for _, path := range paths {
		w := send(shared(app), "OPTIONS", path, "Origin", app, "Access-Control-Request-Method", "PATCH",
			"Access-Control-Request-Headers", "content-type,if-match", "Access-Control-Request-Private-Network", "true")
		h := w.Header()
		if w.Code != http.StatusNoContent || w.Body.Len() > 0 || h.Get("Access-Control-Allow-Origin") != app || h.Get("Access-Control-Allow-Private-Network") != "true" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		if h.Get("Access-Control-Max-Age") == "" || !strings.Contains(strings.Join(h.Values("Vary"), ", "), "Origin") {
			t.Errorf("%s: it cannot be cached as it should: %v", path, h)
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			if !strings.Contains(h.Get("Access-Control-Allow-Methods"), method) {
				t.Errorf("%s: %s is not allowed", path, method)
			}
		}
		for _, name := range []string{"Authorization", "Content-Type", "If-Match", "If-None-Match", "Last-Event-ID", "Producer-Id", "Producer-Epoch", "Producer-Seq", "Stream-Closed", "Stream-Forked-From"} {
			if !strings.Contains(h.Get("Access-Control-Allow-Headers"), name) {
				t.Errorf("%s: %s is not allowed", path, name)
			}
		}
	}
}

// TestCredentialsAreNotForEveryone: with "*" every page may call, but without credentials
// such as the cookies of a proxy.
func TestCredentialsAreNotForEveryone(t *testing.T) {
	for _, method := range []string{"GET", "OPTIONS"} {
		h := send(shared("*"), method, "/api/v1/nothing", "Origin", "https://any.example", "Access-Control-Request-Method", "GET").Header()
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", method, h)
		}
	}
	if h := send(shared("*"), "GET", "/v1/stream").Header(); h.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("an answer that a cache may give to a page later: %v", h)
	}
}

// TestOtherPagesAreToldNothing: other pages cannot read an answer or a preflight.
func TestOtherPagesAreToldNothing(t *testing.T) {
	for _, h := range []http.Handler{shared(), shared(app)} {
		for _, method := range []string{"GET", "OPTIONS"} {
			for _, path := range paths {
				w := send(h, method, path, "Origin", "https://evil.example", "Access-Control-Request-Method", "GET")
				if w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "Origin" {
					t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
				}
			}
		}
	}
	own := send(shared(app), "GET", "/healthz", "Origin", "http://127.0.0.1:4747")
	if own.Code != 200 || own.Header().Get("Access-Control-Allow-Origin") != "" || own.Header().Get("Vary") != "Origin" {
		t.Errorf("our own page: %d %v", own.Code, own.Header())
	}
}

// TestOpaqueOrigins: a page of any author has the origin "null" in a sandboxed frame.
func TestOpaqueOrigins(t *testing.T) {
	w := send(shared(app), "GET", "/healthz", "Origin", "null")
	if w.Code != 403 || strings.Contains(w.Body.String(), "allow-origin") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, method := range []string{"GET", "OPTIONS"} {
		h := send(shared("null", app), method, "/healthz", "Origin", "null", "Access-Control-Request-Method", "GET").Header()
		if h.Get("Access-Control-Allow-Origin") != "null" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", method, h)
		}
	}
	if w := send(shared(app), "GET", "/healthz", "Origin", "https://b.example; rm"); w.Code != 403 || strings.Contains(w.Body.String(), "hint") {
		t.Errorf("what is no origin: %d %s", w.Code, w.Body)
	}
}

// TestPreflightAllowsOtherHeaders: programs add headers of their own.
func TestPreflightAllowsOtherHeaders(t *testing.T) {
	allowed := func(asked string) string {
		return send(shared(app), "OPTIONS", "/healthz", "Origin", app, "Access-Control-Request-Method", "GET",
			"Access-Control-Request-Headers", asked).Header().Get("Access-Control-Allow-Headers")
	}
	usual := allowed("content-type")
	if got := allowed("traceparent, content-type,x-a b,*,,x-ö,x-request-id"); got != usual+", traceparent, x-request-id" {
		t.Errorf("%q, usually %q", got, usual)
	}
}

func TestOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"https://App.example": "https://app.example", "https://a.example:443": "https://a.example", "http://a.example:80/": "http://a.example",
		"http://a.example:443": "http://a.example:443", "https://a.example:8443": "https://a.example:8443", "http://[::0:1]:80": "http://[::1]",
		"capacitor://localhost": "capacitor://localhost", "chrome-extension://abc": "chrome-extension://abc", "*": "*", "null": "null",
		"": "", "https://*.example": "", "ftp://x": "", "ws://x": "", "file:///x": "", "https://": "", "a.example": "", "//a.example": "", "https://a/b": "",
		"https://a?": "", "https://a#": "", "https://u@a": "", "https://a:99999": "", "https://ä.example": "", "https://a b": "", "http://[::1%25lo]": "",
	} {
		got, err := server.Origin(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
