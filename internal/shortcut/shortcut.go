// Package shortcut answers short requests with less work than net/http takes for
// them. For an append of some hundred bytes, most of the server's work is that of
// the HTTP library: a goroutine that watches the connection, deadlines, buffers,
// headers. A [Listener] stands before an http.Server and looks at what comes in.
// A request that is plain and whole is served at once, with the handler that the
// server has. At the first request on a connection that is anything else, the
// connection is the server's for good, with every byte of that request; so there
// is never a question of where a request begins.
//
// What is taken is a narrow part of HTTP/1.1, and whatever is unusual or wrong is
// not taken: it is not for this package to refuse something, or to be lenient.
package shortcut

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Options of a listener. All but the last two are required.
type Options struct {
	Handler http.Handler

	// Takes says which requests may be served here. Their handler answers at
	// once and with little, and does not ask whether the client is still
	// there: the request's context has no end.
	Takes func(method, path string) bool

	HeaderTimeout time.Duration // how long a request may take to arrive; 0 for 10 s
	IdleTimeout   time.Duration // how long there may be none; 0 for 2 min
}

// A Listener hands connections to an http.Server and serves their short requests
// while the server waits for the first one.
type Listener struct {
	net.Listener
	options Options
	buffers sync.Pool // of *[bufferSize]byte

	mu       sync.Mutex
	finished bool
	conns    map[*conn]struct{} // that are not the server's yet
}

// bufferSize is the most bytes of a request that is taken.
const bufferSize = 8 << 10

// New puts a listener before l.
func New(l net.Listener, o Options) *Listener {
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = 10 * time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 2 * time.Minute
	}
	return &Listener{
		Listener: l, options: o, conns: make(map[*conn]struct{}),
		buffers: sync.Pool{New: func() any { return new([bufferSize]byte) }},
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, l: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.finished {
		l.conns[c] = struct{}{}
	} else {
		c.passed = true
	}
	return c, nil
}

// Finish closes the connections that are not the server's, each after the answer
// that is under way. It is called before the server is shut down, which knows
// nothing of those answers.
func (l *Listener) Finish() {
	l.mu.Lock()
	l.finished = true
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for c := range conns {
		c.finish()
	}
}

func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
