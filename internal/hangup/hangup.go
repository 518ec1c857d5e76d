// Package hangup lets a handler say that it does not mind if its client hangs up.
//
// As soon as a request has been read, net/http begins to watch its connection,
// so that the context of the request ends when the client is gone: a goroutine
// waits for a byte, and is driven away by a deadline when the answer is written.
// For who waits long that is needed. For an append, which is answered in a
// moment and stands whoever is still there, it costs as much as all that the
// handler does.
package hangup

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// Serve serves s on l, so that [Ignore] has an effect in its handler. It takes
// over ConnContext of s.
func Serve(s *http.Server, l net.Listener) error {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	return s.Serve(listener{l})
}

// Ignore tells that until the request of ctx is answered its client need not be
// watched. It is called when the body has been read, by a handler that answers
// soon; the context does not end by itself after that. Elsewhere than under
// [Serve] it does nothing.
func Ignore(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.ignored.Store(true)
	}
}

type connKey struct{}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &conn{TCPConn: tcp}, nil
	}
	return c, err
}

// A conn has the methods of a TCP connection, as net/http uses more than those
// of a net.Conn.
type conn struct {
	*net.TCPConn
	ignored atomic.Bool // from when the request was read until something is written
}

// Read reads nothing, at once, while the client is ignored: nobody but the
// watcher reads then, and it goes home. If it came before, it stays and watches.
func (c *conn) Read(b []byte) (int, error) {
	if c.ignored.Load() {
		return 0, nil
	}
	return c.TCPConn.Read(b)
}

// Write begins the answer.
func (c *conn) Write(b []byte) (int, error) {
	if c.ignored.Load() {
		c.ignored.Store(false)
	}
	return c.TCPConn.Write(b)
}
