package server_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tapedeck/tapedeck/server"
)

const (
	indexHTML = "<!doctype html><title>Tapedeck</title><script type=module src=/assets/a-1.js></script>"
	browser   = "text/html,application/xhtml+xml,*/*;q=0.8"
)

var script = strings.Repeat("console.log(1);", 100)

func screened(files map[string]string) http.Handler {
	return handler(func(o *server.Options) { o.Screen = screenFiles(files) })
}

func screenFiles(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func ourScreen() http.Handler {
	return screened(map[string]string{"index.html": indexHTML, "favicon.svg": "<svg/>", "assets/a-1.js": script})
}

// TestDeepLinks: a browser can open a link into the screen, and a program gets an error at
// an unknown path.
func TestDeepLinks(t *testing.T) {
	h := ourScreen()
	for _, c := range []struct {
		path, accept string
		status       int
		has          string
	}{
		{"/", "", 200, "<title>"},
		{"/s/ses_1?at=7", browser, 200, "<title>"},
		{"/s/with.dot", browser, 200, "<title>"},
		{"/s/a%2Fb", browser, 200, "<title>"},
		{"/compare?a=1", browser, 200, "<title>"},
		{"/s/../../etc/passwd", browser, 404, `"not_found"`},
		{"/s/ses_1", "*/*", 200, "<title>"}, // curl
		{"/s/ses_1", "", 200, "<title>"},
		{"/other", "*/*", 404, ""},
		{"/s/ses_1", "application/json", 404, `"not_found"`},
		{"/favicon.ico", "image/*", 404, ""},
		{"/assets/old-0.js", browser, 404, ""}, // of an earlier build: the page would be read as a script
		{"/assets/", browser, 404, ""},
		{"/v1/nothing", browser, 404, ""},
		{"/assets/a-1.js", "", 200, "console.log"},
		{"/favicon.svg", "", 200, "<svg"},
		{"/healthz", browser, 200, "ok"},
		{"/api/v1/s/x", browser, 200, "/api/v1/s/x"}, // the protocols precede the screen
	} {
		rec := get(h, c.path, "Accept", c.accept)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.has) {
			t.Errorf("%s for %q: %d %q, want %d %q", c.path, c.accept, rec.Code, rec.Body, c.status, c.has)
		}
	}
}

// TestScreenIsConfined: the screen shows the output of agents, which must not run.
func TestScreenIsConfined(t *testing.T) {
	for _, path := range []string{"/", "/assets/a-1.js", "/favicon.svg"} {
		h := get(ourScreen(), path).Header()
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy %q is lax", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestScreenIsCached(t *testing.T) {
	h := ourScreen()
	if got := get(h, "/assets/a-1.js").Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("a file with a hash in its name: %q", got)
	}
	page := get(h, "/")
	if got := page.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the page, which names them: %q", got)
	}
	again := get(h, "/s/ses_1", "Accept", browser, "If-None-Match", page.Header().Get("ETag"))
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("the page again: %d", again.Code)
	}
}

func TestScreenIsCompressed(t *testing.T) {
	h := ourScreen()
	for header, zipped := range map[string]bool{"": false, "gzip, deflate, br": true, "br;q=1, gzip;q=0.5": true, "gzip;q=0": false, "x-gzip": false, ";;,": false} {
		rec := get(h, "/assets/a-1.js", "Accept-Encoding", header)
		text := rec.Body.String()
		if (rec.Header().Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("%q: %q", header, rec.Header().Get("Content-Encoding"))
		}
		if zipped {
			r, err := gzip.NewReader(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(r)
			text = string(b)
		}
		if text != script {
			t.Errorf("%q: got %d bytes", header, len(text))
		}
	}
}

func TestScreenIsReadOnly(t *testing.T) {
	for method, want := range map[string]int{http.MethodPost: 405, http.MethodDelete: 405, http.MethodHead: 200} {
		r := httptest.NewRequest(method, "/", nil)
		r.Host = "localhost"
		rec := httptest.NewRecorder()
		ourScreen().ServeHTTP(rec, r)
		if rec.Code != want || method == http.MethodHead && rec.Body.Len() != 0 {
			t.Errorf("%s: %d, %d bytes", method, rec.Code, rec.Body.Len())
		}
	}
}

// TestWithoutAScreen: a build without a screen has a page that says that it runs.
func TestWithoutAScreen(t *testing.T) {
	rec := get(screened(map[string]string{"source.sha256": "x"}), "/")
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), "/api/v1/sessions") {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}
