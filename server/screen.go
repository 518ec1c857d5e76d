package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// screenPolicy is the content security policy of the screen. The screen shows the output
// of agents, which must not run or fetch anything, even if the screen has a fault: no
// other script, no request to another server, no frame around it.
const screenPolicy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A screen serves the pages for people: one HTML file for all pages, and the files that
// it loads.
type screen struct {
	files map[string]*screenFile // by path
	fail  func(http.ResponseWriter, *http.Request, error)
}

// A screenFile is a file in the forms in which it is sent. There are a few files of a
// few hundred KB.
type screenFile struct {
	kind, tag, cache string
	plain, zipped    []byte // zipped is nil if it saves less than a tenth
}

// newScreen reads files. It returns nil if they have no index.html. The screen answers
// with an error by calling fail.
func newScreen(files fs.FS, fail func(http.ResponseWriter, *http.Request, error)) (*screen, error) {
	s := &screen{map[string]*screenFile{}, fail}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, name)
		if err == nil {
			s.files[name] = newScreenFile(name, b)
		}
		return err
	})
	if err != nil || s.files["index.html"] == nil {
		return nil, err
	}
	return s, nil
}

func newScreenFile(name string, b []byte) *screenFile {
	sum := sha256.Sum256(b)
	f := &screenFile{kind: contentType(name), tag: hex.EncodeToString(sum[:8]), cache: "no-cache", plain: b}
	if strings.HasPrefix(name, "assets/") { // the name has a hash of the content
		f.cache = "public, max-age=31536000, immutable"
	}
	if z := zip(b); len(z) < len(b)*9/10 {
		f.zipped = z
	}
	return f
}

// contentType returns the type of a file by its name. It does not use the tables of the
// system, which may have other types.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".sha256":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func zip(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b) // writing to memory cannot fail
	_ = w.Close()
	return z.Bytes()
}

func (s *screen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, problem.MethodNotAllowed(w, r, http.MethodGet, http.MethodHead))
		return
	}
	if prefix := httpapi.Prefix(r); prefix != "" {
		s.fail(w, r, tapedeck.Errorf(tapedeck.NotFound, "the screen works only at the root of a host, not below %.200q", prefix).
			WithHint("the HTTP API and the protocols work here; serve the screen under a host name of its own"))
		return
	}
	f := s.file(r)
	if f == nil {
		s.fail(w, r, problem.NoSuchPath(r.URL.Path))
		return
	}
	f.serve(w, r)
}

// file returns the file at the path of r. At another path a browser gets index.html,
// which decides by the path what to show, and a program gets nil.
func (s *screen) file(r *http.Request) *screenFile {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f := s.files[name]; f != nil {
		return f
	}
	first, _, _ := strings.Cut(name, "/")
	if name != "" && (slices.Contains([]string{"assets", "v1", "sse"}, first) || !strings.Contains(r.Header.Get("Accept"), "text/html")) {
		return nil
	}
	return s.files["index.html"]
}

func (f *screenFile) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("Content-Security-Policy", screenPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // other sites must not learn the ids of sessions
	h.Add("Vary", "Accept-Encoding")
	body, tag := f.plain, f.tag
	if f.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.zipped, f.tag+"-gz"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", strconv.Quote(tag))
	if r.Header.Get("If-None-Match") == strconv.Quote(tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}

// acceptsGzip reports whether Accept-Encoding allows gzip.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType("x/" + strings.TrimSpace(part))
		if err == nil && name == "x/gzip" {
			q, err := strconv.ParseFloat(params["q"], 64)
			return params["q"] == "" || err == nil && q > 0
		}
	}
	return false
}
