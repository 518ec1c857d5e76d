package hangup

import (
	"context"
	"errors"
	"os"
	"time"
)

const (
	// WriteTimeout is how long a write may wait for a client that takes nothing.
	// The client resumes from its cursor, if it is still there.
	WriteTimeout = 60 * time.Second

	// slack is how much a deadline may be nearer than that: it is not set for
	// every write.
	slack = 10 * time.Second

	// slice is how much is written under one deadline, so that a slow client has
	// the time for each slice, not for the whole answer.
	slice = 64 << 10

	// stallAfter is how long a write waits before the client is stalled.
	stallAfter = 250 * time.Millisecond
)

// Stalled asks for f to be called, once, when a write to the client of ctx has
// waited for a moment: the handler can let go of what it holds in memory. A write
// of the handler calls f, and waits on afterwards. A nil f ends that. Elsewhere
// than under [Serve] it does nothing.
func Stalled(ctx context.Context, f func()) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.stalled = f
	}
}

// Notices reports whether [Stalled] has an effect.
func Notices(ctx context.Context) bool {
	_, ok := ctx.Value(connKey{}).(*conn)
	return ok
}

// Write begins or continues the answer.
func (c *conn) Write(b []byte) (int, error) {
	if c.ignored.Load() {
		c.ignored.Store(false)
	}
	written := 0
	for {
		n, err := c.writeSlice(b[written:min(len(b), written+slice)])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

func (c *conn) writeSlice(b []byte) (int, error) {
	if c.stalled == nil {
		return c.writeInTime(b)
	}
	_ = c.SetWriteDeadline(time.Now().Add(c.listener.stallAfter)) // fails only for a closed connection, as does the write
	n, err := c.TCPConn.Write(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if f := c.stalled; f != nil {
		c.stalled = nil
		f()
	}
	m, err := c.writeInTime(b[n:])
	return n + m, err
}

func (c *conn) writeInTime(b []byte) (int, error) {
	if now, most := time.Now(), c.listener.writeTimeout; c.deadline.Sub(now) < most-slack {
		if err := c.SetWriteDeadline(now.Add(most)); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Write(b)
}

// SetWriteDeadline sets the deadline of the next writes. A write prolongs one
// that is near.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return c.TCPConn.SetWriteDeadline(t)
}
