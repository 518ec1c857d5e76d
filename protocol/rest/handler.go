// Package rest is the door for Tapedeck's own HTTP API under /api/v1: sessions,
// their events as pages and as Server-Sent Events, tasks, and views. docs/http.md
// describes it in full.
//
// Access control is not here: who may call is decided before the door.
package rest

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck/internal/sse"
)

// Root is the path under which the door expects to be mounted.
const Root = "/api/v1"

// Options say what the door opens on. The first four are required.
type Options struct {
	Verbs    verbs    // the engine
	Sessions sessions // the hub
	Views    views    // the projections
	Contexts repository
	Search   searcher // nil: the door does not search

	// Task makes streams speak the task protocol unless a request asks for another
	// format, for clients that know nothing of formats.
	Task bool

	MaxBody   int64         // most bytes of a body; 0 for 10 MiB
	MaxAppend int64         // most bytes of the body of an append; 0 for 64 MiB
	MaxImport int64         // most bytes of an import, which is read as it comes; 0 for 4 GiB
	MaxEvents int           // most events of an append; 0 for 100,000
	Heartbeat time.Duration // how long an event stream is silent before a comment is sent; 0 for 15 s
	Logger    *slog.Logger  // for what clients are not told; nil for none
}

type handler struct {
	Options
	mux *http.ServeMux
}

// New returns the door. It expects to see the whole path, [Root] included.
func New(o Options) http.Handler {
	h := &handler{Options: o, mux: http.NewServeMux()}
	h.MaxBody = orDefault(o.MaxBody, 10<<20)
	h.MaxAppend = orDefault(o.MaxAppend, 64<<20)
	h.MaxImport = orDefault(o.MaxImport, 4<<30)
	h.MaxEvents = orDefault(o.MaxEvents, 100_000)
	h.Heartbeat = orDefault(o.Heartbeat, sse.Heartbeat)
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	for _, r := range Routes() {
		h.mux.HandleFunc(r.Method+" "+Root+r.Path, h.failing(r.serve))
	}
	h.mux.HandleFunc(anything, h.unrouted)
	return h
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// failing answers with the error that serve returns.
func (h *handler) failing(serve func(*handler, http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(h, w, r); err != nil {
			h.fail(w, r, err)
		}
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The mux would redirect a path that is not clean; nothing is there.
	if p := r.URL.Path; path.Clean(p) != p {
		h.fail(w, r, noSuchPath(p))
		return
	}
	if h.Task {
		r = r.WithContext(context.WithValue(r.Context(), taskDefault{}, true))
	}
	h.mux.ServeHTTP(w, r)
}

// taskDefault marks the requests of a door with [Options.Task].
type taskDefault struct{}

func byTask(r *http.Request) bool { return r.Context().Value(taskDefault{}) != nil }

// anything is the pattern of what no route matches.
const anything = "/"

// unrouted answers what no route matches: the path is unknown, or its method.
func (h *handler) unrouted(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		probe := *r
		probe.Method = method
		if _, pattern := h.mux.Handler(&probe); pattern != anything {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		h.fail(w, r, noSuchPath(r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	h.fail(w, r, methodNotAllowed(r, allowed))
}
