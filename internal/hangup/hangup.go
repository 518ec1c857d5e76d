// Package hangup serves connections on which a handler can say what it wants to
// know of its client, and bounds what a client can hold: how long a write waits
// for one that takes nothing, and how many connections there are.
//
// As soon as a request has been read, net/http begins to watch its connection,
// so that the context of the request ends when the client is gone: a goroutine
// waits for a byte, and a deadline stops it when the answer is written. A request
// that waits long needs that. For an append, which is answered in a moment and
// stands whether or not the client is there, it costs as much as all that the
// handler does.
package hangup

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Serve serves s on l, so that [Ignore] and [Stalled] have an effect in its
// handler. It takes over ConnContext of s.
func Serve(s *http.Server, l net.Listener, o Limit) error {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	return s.Serve(newListener(l, o))
}

// Ignore tells that until the request of ctx is answered its client need not be
// watched. A handler that answers soon calls it when it has read the body; the
// context does not end by itself after that. Elsewhere than under [Serve] it does
// nothing.
func Ignore(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.ignored.Store(true)
	}
}

type connKey struct{}

// A conn has the methods of a TCP connection, as net/http uses more than those
// of a net.Conn.
type conn struct {
	*net.TCPConn
	ignored atomic.Bool // from when the request was read until something is written

	// The handler's goroutine alone writes, and uses the next two.
	deadline time.Time // of writing
	stalled  func()    // see [Stalled]

	listener *listener
	closed   atomic.Bool
}

// Read reads nothing, at once, while the client is ignored: only the watching
// goroutine reads then, and it ends. If it came before, it stays and watches.
func (c *conn) Read(b []byte) (int, error) {
	if c.ignored.Load() {
		return 0, nil
	}
	return c.TCPConn.Read(b)
}

// Close makes room for another connection.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.listener.open.Add(-1)
	}
	return c.TCPConn.Close()
}
