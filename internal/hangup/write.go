package hangup

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

const (
	// WriteTimeout is how long a write may wait for a client that reads nothing. A
	// client that still lives resumes from its cursor.
	WriteTimeout = 60 * time.Second

	// slack limits how often a deadline is moved: only when it is more than slack too
	// early, not for every write.
	slack = 10 * time.Second

	// slice is how much is written before the deadline moves: a slow client has this
	// time for each slice, not for the whole answer.
	slice = 64 << 10

	// stallAfter is how long a write waits before the client counts as stalled.
	stallAfter = 250 * time.Millisecond
)

// Stalled calls f once when a write to the client of ctx has waited for a moment, so
// that the handler can free memory. The write calls f, on its goroutine, and then
// continues to wait. A nil f ends this. Outside of [Serve], Stalled does nothing.
func Stalled(ctx context.Context, f func()) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		if f == nil {
			c.stalled.Store(nil)
		} else {
			c.stalled.Store(&f)
		}
	}
}

// Notices reports whether [Stalled] has an effect.
func Notices(ctx context.Context) bool {
	_, ok := ctx.Value(connKey{}).(*conn)
	return ok
}

// Write writes a part of the answer, and ends the effect of Ignore.
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
	if c.stalled.Load() == nil {
		return c.writeInTime(b)
	}
	_ = c.SetWriteDeadline(time.Now().Add(c.listener.stallAfter)) // fails only for a closed connection, as does the write
	n, err := c.TCPConn.Write(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if f := c.stalled.Swap(nil); f != nil {
		(*f)()
	}
	m, err := c.writeInTime(b[n:])
	return n + m, err
}

func (c *conn) writeInTime(b []byte) (int, error) {
	if now, timeout := time.Now(), c.listener.writeTimeout; c.deadline.Sub(now) < timeout-slack {
		if err := c.SetWriteDeadline(now.Add(timeout)); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Write(b)
}

// SetWriteDeadline sets the deadline of the next writes. A write moves a deadline that
// is near, so each write has one. The zero time changes nothing: net/http sets it after
// each request, and then each write would set its deadline again.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	c.deadline = t
	return c.TCPConn.SetWriteDeadline(t)
}

// ReadFrom implements [io.ReaderFrom] with Write. That of a TCP connection writes without it.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

// SetDeadline sets the deadline of the next writes and reads.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
