package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
)

const (
	dialTimeout = 2 * time.Second

	// bodyTimeout is how long the owner may take before it asks for the body of a request.
	// It is longer than a request waits there.
	bodyTimeout = time.Minute

	// idleConnections is how many connections to the owner stay open without a request, and
	// idleTimeout for how long: less than the owner keeps them.
	idleConnections = 256
	idleTimeout     = time.Minute
)

// A remote is an owner to which requests are forwarded.
type remote struct {
	Owner
	url  *url.URL
	over context.Context // done when another server is known to own the database

	replaced context.CancelFunc // of over
}

func newRemote(ctx context.Context, o Owner) (*remote, error) {
	u, err := ParseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	r := &remote{Owner: o, url: u}
	r.over, r.replaced = context.WithCancel(ctx)
	return r, nil
}

// ParseAddress reads the address of a server: a URL with a host and without a path.
func ParseAddress(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the address of a server is written as http://10.0.0.1:4747, not %q", s)
	}
	u.Path = ""
	return u, nil
}

// errNotOwner means that the server to which a request was sent has refused it.
var errNotOwner = errors.New("it is not the owner of the database")

// An attempt is one request to an owner.
type attempt struct {
	owner *remote
	sent  bool  // the head of the request was written to the connection
	err   error // nil if the owner has answered; then the client has the answer

	wrote atomic.Bool // while the attempt runs, for sent
	body  *body       // nil if the request has none
	end   context.CancelFunc
}

type attemptKey struct{}

// forward sends a request to an owner, and its answer to the client. If there is no answer,
// the client has got nothing, and the attempt says what is known.
func (n *Node) forward(w http.ResponseWriter, r *http.Request, to *remote) *attempt {
	a := &attempt{owner: to}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), attemptKey{}, a))
	defer cancel()
	defer context.AfterFunc(to.over, cancel)()
	a.end = cancel
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { a.wrote.Store(true) }})
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the owner limits how slow a body may be
	out := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		_ = c.EnableFullDuplex() // the answer may begin before the body ends
		a.body = &body{from: r.Body}
		out.Body = a.body
	}
	n.proxy.ServeHTTP(noContinue{w}, out)
	a.sent = a.wrote.Load()
	return a
}

// repeatable reports whether the request of a failed attempt can be sent again: the owner
// has not got it, or has refused it, or it changes nothing.
func (a *attempt) repeatable(r *http.Request) bool {
	if r.Context().Err() != nil || a.body != nil && a.body.read.Load() {
		return false
	}
	needsBody := a.body != nil && (r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch)
	return !a.sent || errors.Is(a.err, errNotOwner) || isRead(r) || needsBody // a handler reads the body before it acts
}

// failure returns the error for the client of an attempt that cannot be repeated.
func (a *attempt) failure(r *http.Request) error {
	if errors.Is(a.err, errNotOwner) || isRead(r) {
		return unavailable("the server that owns the database has changed")
	}
	err := tapedeck.Errorf(tapedeck.Unavailable, "the connection to the server that owns the database broke, and it is not certain whether this was done").
		WithHint("look, or try again; an append with a producer id is stored once")
	err.After = retryAfter
	return err.Because(a.err)
}

// newProxy returns what forwards requests, and what asks an owner how it is.
func (n *Node) newProxy() (*httputil.ReverseProxy, http.RoundTripper) {
	t := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTimeout,
		ExpectContinueTimeout: bodyTimeout, DisableCompression: true,
	}
	context.AfterFunc(n.closed, t.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1, Rewrite: n.rewrite, ModifyResponse: n.inspect,
		ErrorLog: slog.NewLogLogger(n.options.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			r.Context().Value(attemptKey{}).(*attempt).err = err
		},
	}, t
}

// forwardingHeaders describe the client. A proxy in front of this server sets them, and they
// reach the owner unchanged.
var forwardingHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite makes the request for the owner. It is that of the client, with the same host.
func (n *Node) rewrite(p *httputil.ProxyRequest) {
	a := p.In.Context().Value(attemptKey{}).(*attempt)
	p.Out.URL.Scheme, p.Out.URL.Host = a.owner.url.Scheme, a.owner.url.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // also what Go does not understand
	for _, name := range forwardingHeaders {
		if v, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = v
		}
	}
	if p.In.TLS != nil {
		p.Out.Header.Set("X-Forwarded-Proto", "https")
	}
	if a.body != nil {
		p.Out.Header.Set("Expect", "100-continue") // so an owner that refuses it has read nothing, and it can be sent again
	}
	n.mu.Lock()
	key := n.key
	n.mu.Unlock()
	p.Out.Header.Set(forwardedHeader, proof(key, a.owner.Name, p.Out.Method, p.Out.Host, p.Out.URL.RequestURI(), p.In.RemoteAddr))
}

// inspect looks at the answer of an owner before the client gets it.
func (n *Node) inspect(resp *http.Response) error {
	if resp.StatusCode == http.StatusMisdirectedRequest && resp.Header.Get(ownerHeader) != "" {
		return errNotOwner
	}
	a := resp.Request.Context().Value(attemptKey{}).(*attempt)
	isEvents := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if isEvents || resp.StatusCode == http.StatusSwitchingProtocols {
		context.AfterFunc(n.cut, a.end)
	}
	if isEvents {
		resp.Body = &events{resp.Body, resp.Request.Context()}
	}
	return nil
}

// A body is that of a client. It notes whether something was read of it, and stays open when
// an attempt ends, because another one may follow.
type body struct {
	from io.Reader
	read atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.from.Read(p)
}

// Close implements [io.Closer]. The server closes what the client sends.
func (b *body) Close() error { return nil }

// An events body ends without an error when this server ends the stream, so that the
// client gets the end of the stream and comes back.
type events struct {
	io.ReadCloser
	ctx context.Context
}

func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && e.ctx.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// A noContinue writer drops the 100 Continue of the owner, because this server sends its own
// when it begins to read the body.
type noContinue struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (q noContinue) WriteHeader(status int) {
	if status != http.StatusContinue {
		q.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for [http.ResponseController].
func (q noContinue) Unwrap() http.ResponseWriter { return q.ResponseWriter }
