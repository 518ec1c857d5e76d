package shortcut

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A conn serves short requests inside of the Read with which the http.Server
// waits for its first request.
type conn struct {
	net.Conn
	l *Listener

	in       *[bufferSize]byte // nil when no bytes are held
	n        int               // how many it has
	out      []byte
	header   http.Header // of an answer
	remote   string
	served   bool
	deadline time.Time // for reading, as it was set last

	mu      sync.Mutex
	passed  bool // the connection is the server's
	busy    bool // with an answer
	closing bool // when it is not busy any more
}

// Read implements [net.Conn]. Only one goroutine of an http.Server reads at a
// time.
func (c *conn) Read(p []byte) (int, error) {
	if !c.passed {
		if err := c.serve(); err != nil {
			c.drop()
			return 0, err
		}
	}
	if c.n == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.in[:c.n])
	if c.n = copy(c.in[:], c.in[n:c.n]); c.n == 0 {
		c.drop()
	}
	return n, nil
}

func (c *conn) drop() {
	if c.in != nil {
		c.l.buffers.Put(c.in)
		c.in, c.n = nil, 0
	}
}

// serve serves requests until there is one that is not taken.
func (c *conn) serve() error {
	c.in = c.l.buffers.Get().(*[bufferSize]byte)
	c.remote = c.RemoteAddr().String()
	for {
		r, size := parse(c.in[:c.n], c.l.options.Takes)
		switch {
		case size == notTaken, size == notWhole && c.n == len(c.in):
			return c.pass()
		case size > 0:
			if err := c.answer(r); err != nil {
				return err
			}
			c.served = true
			c.n = copy(c.in[:], c.in[size:c.n])
			continue
		}
		if err := c.wait(); err != nil {
			return err
		}
		n, err := c.Conn.Read(c.in[c.n:])
		c.n += n
		if n == 0 && err != nil {
			if c.n > 0 { // half a request: the server knows what to do
				return c.pass()
			}
			return err
		}
	}
}

// wait sets how long to wait for bytes. As long as none has come, that is for
// the server to say; later it is set anew now and then, not for every request.
func (c *conn) wait() error {
	now, o := time.Now(), &c.l.options
	switch {
	case c.n > 0:
		if at := now.Add(o.HeaderTimeout); c.deadline.IsZero() || c.deadline.After(at) {
			return c.setDeadline(at)
		}
	case c.served && c.deadline.Sub(now) < o.IdleTimeout*3/4:
		return c.setDeadline(now.Add(o.IdleTimeout))
	}
	return nil
}

func (c *conn) setDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

// pass leaves the connection to the server, as if it had just been opened.
func (c *conn) pass() error {
	c.l.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return errEnd
	}
	c.passed, c.out, c.header = true, nil, nil
	if c.deadline.IsZero() {
		return nil
	}
	return c.setDeadline(time.Now().Add(c.l.options.HeaderTimeout))
}

// errEnd ends a connection. To other errors of Read the server would answer.
var errEnd = io.EOF

// answer has a request handled, and sends the answer. It is sent although the
// server may want to close the connection: who appends wants to know.
func (c *conn) answer(r *http.Request) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return errEnd
	}
	c.busy = true
	c.mu.Unlock()
	defer c.rest() // a panic is for the server, which closes the connection
	if c.header == nil {
		c.header = make(http.Header)
	}
	clear(c.header)
	r.RemoteAddr = c.remote
	w := response{header: c.header}
	c.l.options.Handler.ServeHTTP(&w, r)
	c.out = w.append(c.out[:0])
	if _, err := c.Conn.Write(c.out); err != nil {
		return errEnd // there is nobody to tell
	}
	if cap(c.out) > bufferSize {
		c.out = nil
	}
	if w.last() {
		return errEnd
	}
	return nil
}

func (c *conn) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = false; c.closing {
		_ = c.Conn.Close()
	}
}

// Close implements [net.Conn]. The server calls it from another goroutine when it
// is shut down.
func (c *conn) Close() error {
	c.l.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing = true; c.busy {
		return nil
	}
	return c.Conn.Close()
}

// finish closes the connection unless it is the server's.
func (c *conn) finish() {
	c.mu.Lock()
	passed := c.passed
	if !passed {
		c.closing = true
	}
	idle := !c.busy && !passed
	c.mu.Unlock()
	if idle {
		_ = c.Conn.Close()
	}
}
