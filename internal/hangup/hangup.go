// Package hangup serves connections on which a handler can say whether it needs to know
// that its client disconnects or stalls. It also bounds what clients can hold: how long
// a write waits for a client that reads nothing, and the number of connections.
//
// As soon as a request has been read, net/http watches its connection, so that the
// context of the request ends when the client disconnects: a goroutine waits for a byte,
// and a deadline stops it when the answer is written. A request that waits long needs
// this. An append is answered at once, and it is stored whether or not the client
// disconnects; watching would cost as much as everything else that its handler does.
package hangup

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Serve serves s on l, so that [Ignore] and [Stalled] work in its handler. It sets
// ConnContext of s.
func Serve(s *http.Server, l net.Listener, o Limit) error {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	return s.Serve(newListener(l, o))
}

// Ignore says that the client of the request of ctx need not be watched until the
// request is answered. A handler that answers soon calls it when it has read the body.
// After that, ctx does not end when the client disconnects. Outside of [Serve], Ignore
// does nothing.
func Ignore(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.ignored.Store(true)
	}
}

type connKey struct{}

// A conn has the methods of a TCP connection, because net/http uses more than those of
// a net.Conn.
type conn struct {
	*net.TCPConn
	ignored atomic.Bool // from the call of Ignore until something is written

	reads    reads     // the deadline of reads
	deadline time.Time // the deadline of writes; writes come one at a time

	// See [Stalled]. A WebSocket answers a ping on another goroutine than the one that
	// sends events, so this is atomic.
	stalled atomic.Pointer[func()]

	listener *listener
	closed   atomic.Bool
}

// Close closes the connection, and counts it no longer.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.listener.open.Add(-1)
	}
	return c.TCPConn.Close()
}
