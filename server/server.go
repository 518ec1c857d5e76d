// Package server combines the protocols into one [http.Handler]: it mounts them,
// answers health checks, refuses foreign web pages, and logs panics. It knows each
// protocol only as a handler, and no stores and runners.
package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// Options configure the server.
type Options struct {
	REST     http.Handler // the HTTP API, under /api/v1
	Task     http.Handler // the HTTP API for clients of the task protocol, under /sse; nil for none
	Channels http.Handler // the HTTP API in the form of the six channels, under /channels; nil for none
	Durable  http.Handler // Durable Streams, under /v1/stream
	MCP      http.Handler // the Model Context Protocol, at /mcp; nil for none
	AGUI     http.Handler // AG-UI under /agui, and for CopilotKit under /copilotkit; nil for none
	AISDK    http.Handler // the UI message stream of the AI SDK, under /aisdk; nil for none
	A2A      http.Handler // A2A, under /a2a and /api/a2a, and its cards; nil for none

	IsKagent func(*http.Request) bool // reports whether A2A answers a request below /api: one of kagent's; nil for none

	Admin http.Handler // at /metrics and /debug/pprof/; it refuses who is no admin; nil for none

	Ready   func(context.Context) error // an error says why requests cannot be served; nil for always ready
	Screen  fs.FS                       // the files of the screen; nil for none
	Version string                      // shown on the front page if there is no screen

	// Instance is the id of this process. /healthz has it in a header, so that a client
	// can see whether it has reached the intended server.
	Instance string
	Logger   *slog.Logger // nil for none

	// Authenticate returns the request with the identity of its sender in its context. An
	// error is the answer; the handlers see no such request. It is not called for the
	// files of the screen, the health checks, the log-in, and the keys that sign webhooks.
	// Nil: there is no access control.
	Authenticate func(r *http.Request) (*http.Request, error)

	Login http.Handler // at /login; nil for none

	// AllowOrigins are the origins, such as "https://app.example", whose pages may call
	// every endpoint from a browser. Each is in the form that [Origin] returns. The
	// server's own pages are always allowed. "*" allows all origins. "*" and "null" allow
	// no credentials.
	AllowOrigins []string

	// Bodies has the budget of memory for the bodies of requests. A request that does not
	// fit gets 503. Nil for a gate with 128 MiB.
	Bodies *intake.Gate

	// LogRequests logs a line for each request. A Logger for debug messages gets these lines in
	// any case.
	LogRequests bool

	// About returns the sender and the session of a request, for that line; "" for what is not
	// known. Nil: neither is known.
	About func(r *http.Request) (sender, session string)

	Meter Meter // measures the requests; nil for none

	// Trace begins to trace a request of a protocol. It returns the request with the trace
	// in its context, and a function that is called with the status at the end, nil for
	// none. Nil: no request is traced.
	Trace func(r *http.Request, protocol string) (*http.Request, func(status int))

	// Mark returns a request with what the audit log says about it in its context. Nil: no
	// request is marked.
	Mark func(r *http.Request) *http.Request

	// Refused is called after a request was answered with 401 or 403; r has the identity of
	// its sender if that is known. Nil for nothing.
	Refused func(r *http.Request, status int)

	// AnyHost accepts every Host header. Without it only names of the loopback and those
	// of AllowHosts are accepted, so that a page cannot reach the server by a DNS name of
	// its own that points to this machine.
	AnyHost bool

	// AllowHosts are the names, without a port, by which clients reach the server besides
	// those of the loopback, such as "deck.example".
	AllowHosts []string
}

// New returns the server's handler.
func New(o Options) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	o.REST = named(o.REST)
	o.mount(mux, "/api/v1/", o.REST)
	o.mount(mux, "/api/", o.outside(alias(o.REST)))
	if o.Task != nil {
		o.mount(mux, taskRoot+"/", within(taskRoot, o.Task))
	}
	if o.Channels != nil {
		o.mount(mux, channelsRoot+"/", within(channelsRoot, o.Channels))
	}
	if o.MCP != nil {
		mux.Handle("/mcp", o.MCP)
	}
	mux.Handle("/v1/stream", o.Durable)
	mux.Handle("/v1/stream/", o.Durable)
	o.mountA2A(mux)
	if o.AGUI != nil {
		o.mount(mux, "/agui/", o.AGUI)
		mux.Handle("/copilotkit", o.AGUI)
		mux.Handle("/copilotkit/", o.AGUI)
	}
	if o.AISDK != nil {
		o.mount(mux, "/aisdk/", named(o.AISDK))
	}
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	if o.Login != nil {
		mux.Handle("/login", o.Login)
	}
	if o.Admin != nil {
		mux.Handle("/metrics", o.Admin)
		mux.Handle("/debug/pprof/", o.Admin)
	}
	o.mountPages(mux)
	if o.Bodies == nil {
		o.Bodies = intake.New(0)
	}
	logs := o.LogRequests || o.Logger.Enabled(context.Background(), slog.LevelDebug)
	return &front{&o, mux, logs, newRefusals(o.Logger)}
}

// A front is the way of a request into the server. It is one function, not a chain of
// handlers: their frames would be on the stack of every follower that waits.
type front struct {
	*Options
	mux  *http.ServeMux
	logs bool // each request is logged

	refusals *refusals
}

// ServeHTTP implements [http.Handler].
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m *measured
	f.keepID(w, r)
	if f.Mark != nil {
		r = f.Mark(r)
	}
	if f.Meter != nil || f.logs || f.Trace != nil || f.Refused != nil || f.Authenticate != nil {
		m = f.measure(w, r)
		w = m
		if f.Trace != nil {
			r, m.traced = f.Trace(r, m.protocol)
		}
	}
	defer f.recovered(r, m)
	if f.guard(w, r) { // it is answered
		return
	}
	if f.Authenticate != nil {
		if r = f.identified(w, r); r == nil {
			return
		}
		if m != nil {
			m.request = r
		}
	}
	switch {
	case intake.Counts(r):
		f.Bodies.Serve(w, r, f.handlerFor(r.URL, f.mux), f.fail)
	default:
		f.handlerFor(r.URL, f.mux).ServeHTTP(w, r)
	}
}

// mount mounts what is below a root. At the root itself there is nothing; mux would
// redirect a request for it to the path with a slash, where there is nothing either.
func (o *Options) mount(mux *http.ServeMux, root string, h http.Handler) {
	mux.Handle(root, h)
	mux.HandleFunc(strings.TrimSuffix(root, "/"), o.nothing)
}

// mountA2A mounts A2A. The cards of the default agent are where clients look for them.
func (o *Options) mountA2A(mux *http.ServeMux) {
	if o.A2A == nil {
		return
	}
	o.mount(mux, "/a2a/", o.A2A)
	o.mount(mux, "/api/a2a/", o.A2A)
	for _, pattern := range []string{"/.well-known/agent-card.json", "/.well-known/agent.json"} {
		mux.Handle(pattern, o.A2A)
	}
}

// fail answers with an error.
func (o *Options) fail(w http.ResponseWriter, r *http.Request, err error) {
	problem.Write(w, r, err, o.Logger)
}

// handlerFor returns the handler for u: that of a protocol, or mux for every other
// path, and for a path that escapes more characters than it must.
//
// Durable and REST are called without mux, which is slower: for each request it also
// looks for a route with a slash at the end.
//
// A path with an empty segment or with ".." never reaches mux, which would redirect it:
// a path with an empty id would reach another endpoint. Such a path goes to Durable or
// REST, which answers with an error. Outside of their roots, taskRoot and channelsRoot the
// answer is 404.
func (o *Options) handlerFor(u *url.URL, mux http.Handler) http.Handler {
	p, escaped := u.Path, u.RawPath != ""
	if escaped {
		p = u.EscapedPath()
	}
	unclean := strings.Contains(p, "//") || (escaped || strings.Contains(p, "/.")) && !isClean(p)
	switch {
	case escaped && !unclean:
		return mux
	case strings.HasPrefix(p, "/v1/stream/"):
		return o.Durable
	case strings.HasPrefix(p, "/api/v1/"), unclean && strings.HasPrefix(p, "/api/"),
		unclean && o.Task != nil && strings.HasPrefix(p, taskRoot+"/"), unclean && o.Channels != nil && strings.HasPrefix(p, channelsRoot+"/"):
		return o.REST
	case unclean:
		return http.HandlerFunc(o.nothing)
	}
	return mux
}

// isClean reports whether mux serves a path without a redirect.
func isClean(p string) bool {
	clean := path.Clean(p)
	return clean == p || clean+"/" == p
}

// nothing answers a request for a path that is not mounted.
func (o *Options) nothing(w http.ResponseWriter, r *http.Request) {
	o.fail(w, r, problem.NoSuchPath(r.URL.Path))
}

// mountPages mounts the screen, or else a page that lists the endpoints.
func (o *Options) mountPages(mux *http.ServeMux) {
	if o.Screen != nil {
		s, err := newScreen(o.Screen, o.fail)
		if s != nil {
			mux.Handle("/", s)
			return
		}
		o.Logger.Error("there is no screen", "error", err)
	}
	mux.HandleFunc("GET /{$}", o.front)
	mux.HandleFunc("/", o.nothing)
}

// taskRoot begins the base URL of clients of the task protocol. They append
// /api/v1/sessions and so on.
const taskRoot = "/sse"

// channelsRoot begins the base URL of clients of the form of the six channels, which append
// the same.
const channelsRoot = "/channels"

// valGeneration is the generation of the HTTP API: a number that grows when clients that
// exist could read its answers wrongly. packages/client/src/http.ts has the same.
var valGeneration = []string{"1"}

// named names the generation of the API in each answer of a handler, so that a client can say that it
// is too old, or that the server is.
func named(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Tapedeck-Api"] = valGeneration
		api.ServeHTTP(w, r)
	})
}

// instanceHeader is the header of [Options.Instance]; package client reads it.
const instanceHeader = "Tapedeck-Instance"

func (o *Options) healthz(w http.ResponseWriter, _ *http.Request) {
	if o.Instance != "" {
		w.Header().Set(instanceHeader, o.Instance)
	}
	w.Header().Set("Cache-Control", "no-store")
	writeText(w, http.StatusOK, "ok\n")
}

func (o *Options) readyz(w http.ResponseWriter, r *http.Request) {
	if o.Ready != nil {
		if err := o.Ready(r.Context()); err != nil {
			o.Logger.Warn("not ready", "error", err)
			o.fail(w, r, notReady(err))
			return
		}
	}
	writeText(w, http.StatusOK, "ready\n")
}

// notReady returns what a client may see of the reason why the server is not ready.
func notReady(err error) error {
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind == tapedeck.Internal {
		return tapedeck.Errorf(tapedeck.Unavailable, "the server is not ready").WithHint("the server's log says why")
	}
	return &tapedeck.Error{Kind: tapedeck.Unavailable, Message: "the server is not ready: " + e.Message, Hint: e.Hint}
}

// guard refuses requests of foreign web pages, and lets allowed pages read the answers.
// It reports whether it has answered the request. Every page in a browser on this
// machine can reach the loopback, where the server has no access control. So an unknown
// origin is also refused for reading.
//
//go:noinline
func (o *Options) guard(w http.ResponseWriter, r *http.Request) bool {
	if err := o.foreign(r); err != nil {
		w.Header()["Vary"] = valVaryOrigin // a cache must not answer the server's own page with it
		o.fail(w, r, err)
		return true
	}
	return o.share(w, r)
}

// foreign returns the error of a request that is refused, nil for an allowed one.
func (o *Options) foreign(r *http.Request) error {
	origin := first(r.Header["Origin"])
	switch {
	case !o.AnyHost && !isProbe(r) && !isLoopbackHost(r.Host) && !o.isAllowedHost(r.Host):
		return tapedeck.Errorf(tapedeck.Forbidden, "this server does not accept the host name %q", r.Host).
			WithHint("use 127.0.0.1 or localhost, or start the server with --allow-host and that name")
	case origin != "" && !o.allowed(origin, r.Host):
		return notAllowed(origin)
	case isCode(r):
		return tapedeck.Errorf(tapedeck.Forbidden, "this cannot be loaded as a script or a style").
			WithHint("read it with fetch: anybody can write the content of a stream")
	case origin == "" && first(r.Header["Sec-Fetch-Site"]) == "cross-site" && first(r.Header["Sec-Fetch-Mode"]) != "navigate" && !slices.Contains(o.AllowOrigins, "*"):
		return tapedeck.Errorf(tapedeck.Forbidden, "pages of another site may not load this")
	}
	return nil
}

// isProbe reports whether a request asks only whether the server runs, or can work. Programs
// that watch servers use addresses, and a foreign page learns nothing else from the answer.
func isProbe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}

// notAllowed returns the error of a refused origin. Its hint says how to allow it.
func notAllowed(origin string) error {
	err := tapedeck.Errorf(tapedeck.Forbidden, "pages of %q may not call this server", origin)
	switch named, invalid := Origin(origin); {
	case invalid != nil:
		return err
	case named == opaque:
		return err.WithHint("sandboxed frames and files of any author have this origin; serve the page from an origin of its own")
	default:
		return err.WithHint("start the server with --allow-origin %s to allow them", named)
	}
}

// isCode reports whether a page or a worker loads a path of a protocol as code. A stream
// has the content type that its writer chose, and such a script would run with the
// server's own origin.
func isCode(r *http.Request) bool {
	dest := r.Header["Sec-Fetch-Dest"]
	if len(dest) == 0 || protocolOf(r.URL.Path) == otherProtocol {
		return false
	}
	switch dest[0] {
	case "script", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "style", "xslt", "manifest", "object", "embed":
		return true
	}
	return false
}

// first returns the first value of a header, "" if there is none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (o *Options) allowed(origin, host string) bool {
	if slices.Contains(o.AllowOrigins, "*") || slices.Contains(o.AllowOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == host
}

func isLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") || name == "" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" && ip.IsLoopback()
}
