package hangup

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// reading says how a connection is read.
var reading = map[string]func(c *conn) error{
	"Read":    func(c *conn) error { _, err := c.Read(make([]byte, 1)); return err },
	"WriteTo": func(c *conn) error { _, err := io.Copy(io.Discard, c); return err },
}

var past = time.Unix(1, 0)

// TestDeadlineBeforeRead: a read ends at the newest deadline that was set before.
func TestDeadlineBeforeRead(t *testing.T) {
	later := time.Now().Add(time.Hour)
	for name, set := range map[string]func(c *conn) error{
		"soon":             func(c *conn) error { return c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) },
		"past":             func(c *conn) error { return c.SetReadDeadline(past) },
		"later, then past": func(c *conn) error { return errors.Join(c.SetReadDeadline(later), c.SetReadDeadline(past)) },
		"none, then past":  func(c *conn) error { return errors.Join(c.SetReadDeadline(time.Time{}), c.SetReadDeadline(past)) },
		"past, for both":   func(c *conn) error { return c.SetDeadline(past) },
	} {
		for how, read := range reading {
			t.Run(name+", "+how, func(t *testing.T) {
				c, _ := pair(t, time.Minute, time.Minute)
				if err := set(c); err != nil {
					t.Fatal(err)
				}
				exceeded(t, begin(c, read))
			})
		}
	}
}

// TestDeadlineOfAWaitingRead: a deadline that is set while a read waits ends it.
func TestDeadlineOfAWaitingRead(t *testing.T) {
	for name, set := range map[string]func(c *conn) error{
		"of reads": func(c *conn) error { return c.SetReadDeadline(past) },
		"of both":  func(c *conn) error { return c.SetDeadline(past) },
	} {
		for how, read := range reading {
			t.Run(name+", "+how, func(t *testing.T) {
				c, _ := pair(t, time.Minute, time.Minute)
				if err := c.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				ended := begin(c, read)
				for !c.waits() {
					runtime.Gosched()
				}
				if err := set(c); err != nil {
					t.Fatal(err)
				}
				exceeded(t, ended)
			})
		}
	}
}

func begin(c *conn, read func(c *conn) error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- read(c) }()
	return ended
}

// exceeded fails the test unless the read ends because of its deadline.
func exceeded(t *testing.T, read <-chan error) {
	t.Helper()
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the read ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the read waits")
	}
}

func (c *conn) waits() bool {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	return c.reads.waiting > 0
}

// TestPastDeadlineIsLifted: after a deadline that has passed, a read without one waits for
// its client.
func TestPastDeadlineIsLifted(t *testing.T) {
	c, client := pair(t, time.Minute, time.Minute)
	b := make([]byte, 1)
	if err := c.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(client, "x") }()
	if n, err := c.Read(b); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestNoWriteDeadline: the zero time does not change the deadline of writes. The next write
// moves a deadline that has passed.
func TestNoWriteDeadline(t *testing.T) {
	for name, write := range map[string]func(c *conn) error{
		"Write":    func(c *conn) error { _, err := c.Write([]byte("x")); return err },
		"ReadFrom": func(c *conn) error { _, err := io.Copy(c, io.LimitReader(strings.NewReader("x"), 1)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := pair(t, time.Minute, time.Minute)
			soon := time.Now().Add(time.Second)
			if err := errors.Join(c.SetWriteDeadline(soon), c.SetWriteDeadline(time.Time{})); err != nil || !c.deadline.Equal(soon) {
				t.Fatalf("the deadline is %v, %v", c.deadline, err)
			}
			if err := errors.Join(c.SetWriteDeadline(past), c.SetDeadline(time.Time{}), write(c)); err != nil {
				t.Errorf("the write ended with %v", err)
			}
		})
	}
}
