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

	"github.com/tapedeck/tapedeck/internal/problem"
)

// screenPolicy is what a browser lets the screen do. What an agent says is shown
// on it, and must neither run nor fetch anything, whatever gets past the screen's
// own care: no script but ours, no request to anybody else, no frame around it.
const screenPolicy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A screen serves the pages for people: one HTML file that shows them all, and
// what it loads.
type screen struct {
	files map[string]*screenFile // by path
	fail  func(http.ResponseWriter, *http.Request, error)
}

// A screenFile is kept as it is sent. There are a few, of some hundred KB.
type screenFile struct {
	kind, tag, cache string
	plain, zipped    []byte // zipped is nil if that gains nothing
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
	if strings.HasPrefix(name, "assets/") { // has a hash of its content in its name
		f.cache = "public, max-age=31536000, immutable"
	}
	if z := zip(b); len(z) < len(b)*9/10 {
		f.zipped = z
	}
	return f
}

// contentType does not ask the system, which may know anything by these names.
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
	_, _ = w.Write(b) // neither fails: it goes into memory
	_ = w.Close()
	return z.Bytes()
}

func (s *screen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.fail(w, r, problem.MethodNotAllowed(w, r, http.MethodGet, http.MethodHead))
		return
	}
	f := s.file(r)
	if f == nil {
		s.fail(w, r, problem.NoSuchPath(r.URL.Path))
		return
	}
	f.serve(w, r)
}

// file returns what is at the path of r. Where there is nothing, a person gets
// the page, which knows from the path what to show, and a program nothing.
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
	h.Set("Referrer-Policy", "no-referrer") // ids of sessions are nobody else's business
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
		_, _ = w.Write(body) // the client is gone; there is nobody to tell
	}
}

// acceptsGzip reads Accept-Encoding.
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
