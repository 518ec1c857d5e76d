package hangup

import (
	"io"
	"sync"
	"time"
)

// reads has the deadline of the reads of a connection. net/http sets about four deadlines
// for each request. Most requests are in its buffer as a whole after one read, so three of
// the deadlines limit nothing, and each costs a change of a timer. So a deadline is given
// to the connection when a read begins, or while a read waits.
type reads struct {
	mu      sync.Mutex
	wanted  time.Time // the deadline of the last call of SetReadDeadline; zero for none
	set     time.Time // the deadline that the connection has
	waiting int       // reads that have begun
}

// Read reads from the client. While the client is ignored, only the goroutine of
// net/http that watches the connection reads. For that goroutine Read returns 0 bytes,
// which ends it. A Read that already waits continues.
func (c *conn) Read(b []byte) (int, error) {
	if c.ignored.Load() {
		return 0, nil
	}
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Read(b)
	c.reads.mu.Lock()
	c.reads.waiting--
	c.reads.mu.Unlock()
	return n, err
}

func (c *conn) beginRead() error {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if err := c.setWanted(); err != nil {
		return err
	}
	c.reads.waiting++
	return nil
}

// SetReadDeadline sets the deadline of reads: of the one that waits, and of later ones.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.reads.wanted = t
	if c.reads.waiting == 0 {
		return nil
	}
	return c.setWanted()
}

// setWanted gives the deadline wanted to the connection. The caller holds reads.mu.
func (c *conn) setWanted() error {
	if c.reads.wanted.Equal(c.reads.set) {
		return nil
	}
	if err := c.TCPConn.SetReadDeadline(c.reads.wanted); err != nil {
		return err
	}
	c.reads.set = c.reads.wanted
	return nil
}

// WriteTo implements [io.WriterTo] with Read. That of a TCP connection reads without it.
func (c *conn) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}
