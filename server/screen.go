package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

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

// A screenFile is a file as it is sent. Only its compressed form is kept in memory, and
// only after its first use: most programs that embed Tapedeck show no screen.
type screenFile struct {
	files             fs.FS
	name, kind, cache string
	prepare           func() (prepared, error)
}

// prepared is what the first request of a file computes.
type prepared struct {
	tag    string
	size   int
	zipped []byte // nil if it saves less than a tenth
}

// newScreen reads files. It returns nil if they have no index.html. The screen answers
// with an error by calling fail.
func newScreen(files fs.FS, fail func(http.ResponseWriter, *http.Request, error)) (*screen, error) {
	s := &screen{map[string]*screenFile{}, fail}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s.files[name] = newScreenFile(files, name)
		return nil
	})
	if err != nil || s.files["index.html"] == nil {
		return nil, err
	}
	return s, nil
}

func newScreenFile(files fs.FS, name string) *screenFile {
	f := &screenFile{files: files, name: name, kind: contentType(name), cache: "no-cache"}
	if strings.HasPrefix(name, "assets/") { // the name has a hash of the content
		f.cache = "public, max-age=31536000, immutable"
	}
	f.prepare = sync.OnceValues(func() (prepared, error) {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return prepared{}, err
		}
		sum := sha256.Sum256(b)
		p := prepared{tag: hex.EncodeToString(sum[:8]), size: len(b)}
		if z := zip(b); len(z) < len(b)*9/10 {
			p.zipped = bytes.Clone(z) // without the space that its buffer has reserved
		}
		return p, nil
	})
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
	if err := f.serve(w, r); err != nil {
		s.fail(w, r, err)
	}
}

// file returns the file at the path of r. The page of a session is index.html, and so is every
// other path for a browser: the page decides by the path what to show. A program gets nil.
func (s *screen) file(r *http.Request) *screenFile {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f := s.files[name]; f != nil {
		return f
	}
	first, _, _ := strings.Cut(name, "/")
	switch {
	case name == "", first == "s" && acceptsPage(r):
		return s.files["index.html"]
	case slices.Contains([]string{"assets", "v1", "sse"}, first), !strings.Contains(r.Header.Get("Accept"), "text/html"):
		return nil
	}
	return s.files["index.html"]
}

// acceptsPage reports whether a client takes a page: also one that takes anything.
func acceptsPage(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, "text/html") || strings.Contains(accept, "*/*")
}

// serve answers r. After an error nothing was written.
func (f *screenFile) serve(w http.ResponseWriter, r *http.Request) error {
	p, err := f.prepare()
	if err != nil {
		return err
	}
	plain, err := f.files.Open(f.name)
	if err != nil {
		return err
	}
	defer func() { _ = plain.Close() }()
	var body io.Reader = plain
	h := w.Header()
	if p.zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, p.size, p.tag = bytes.NewReader(p.zipped), len(p.zipped), p.tag+"-gz"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("Content-Security-Policy", screenPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // other sites must not learn the ids of sessions
	h.Add("Vary", "Accept-Encoding")
	h.Set("ETag", strconv.Quote(p.tag))
	if r.Header.Get("If-None-Match") == strconv.Quote(p.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(p.size))
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, body) // fails only if the client has disconnected
	}
	return nil
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
