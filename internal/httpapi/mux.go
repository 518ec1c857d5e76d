package httpapi

import (
	"log/slog"
	"net/http"
	"path"

	"github.com/tapedeck/tapedeck/internal/problem"
)

// A Mux routes requests below a root path. Unlike [http.ServeMux] it never redirects, and
// every error that it answers is JSON.
type Mux struct {
	root   string
	mux    *http.ServeMux
	log    *slog.Logger
	routes []string
}

// NewMux returns a mux without routes. Root is the path that begins all its routes,
// without a slash at the end.
func NewMux(root string, log *slog.Logger) *Mux {
	m := &Mux{root: root, mux: http.NewServeMux(), log: log}
	m.mux.HandleFunc(unmatched, m.unrouted)
	return m
}

// Handle routes a method and a path below the root to serve. If serve returns an
// error, that is the answer; serve has written nothing then.
func (m *Mux) Handle(method, path string, serve func(http.ResponseWriter, *http.Request) error) {
	m.routes = append(m.routes, method+" "+m.root+path)
	m.mux.HandleFunc(method+" "+m.root+path, func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			problem.Write(w, r, err, m.log)
		}
	})
}

// Routes returns the methods and paths that were passed to Handle.
func (m *Mux) Routes() []string { return m.routes }

// ServeHTTP implements [http.Handler].
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// An http.ServeMux would redirect a path that is not clean. A client that has
	// lost an id would reach another endpoint.
	if p := r.URL.Path; path.Clean(p) != p {
		problem.Write(w, r, problem.NoSuchPath(p), m.log)
		return
	}
	m.mux.ServeHTTP(w, r)
}

// unmatched is the pattern of the requests that no route matches.
const unmatched = "/"

// unrouted answers a request whose path is unknown, or whose method is not allowed.
func (m *Mux) unrouted(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		probe := *r
		probe.Method = method
		if _, pattern := m.mux.Handler(&probe); pattern != unmatched {
			allowed = append(allowed, method)
		}
	}
	err := problem.NoSuchPath(r.URL.Path)
	if allowed != nil {
		err = problem.MethodNotAllowed(w, r, allowed...)
	}
	problem.Write(w, r, err, m.log)
}
