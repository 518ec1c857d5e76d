package hangup

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// pair returns the two ends of a connection, and sets the time-outs of writes of the
// server's end.
func pair(t *testing.T, writeTimeout, stallAfter time.Duration) (*conn, net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := newListener(inner, Limit{})
	l.writeTimeout, l.stallAfter = writeTimeout, stallAfter
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*conn), client
}

// TestStuckReader: if a client reads nothing, a write fails after its time-out. The handler
// is called before.
func TestStuckReader(t *testing.T) {
	c, _ := pair(t, 50*time.Millisecond, time.Millisecond)
	stalled := 0
	Stalled(context.WithValue(t.Context(), connKey{}, c), func() { stalled++ })
	var err error
	for range 1 << 10 { // more than the kernel buffers
		if _, err = c.Write(make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || stalled != 1 {
		t.Errorf("%v, the handler was called %d times", err, stalled)
	}
}

// TestStalledReaderContinues: after a stall no byte is missing, and no byte is sent twice.
func TestStalledReaderContinues(t *testing.T) {
	c, client := pair(t, time.Minute, time.Millisecond)
	const size = 64 << 20
	read := make(chan struct{})
	Stalled(context.WithValue(t.Context(), connKey{}, c), func() { close(read) })
	go func() {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i / 251)
		}
		_, _ = c.Write(b)
		_ = c.Close()
	}()
	<-read
	got, err := io.ReadAll(client)
	if err != nil || len(got) != size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i := range got {
		if got[i] != byte(i/251) {
			t.Fatalf("byte %d is wrong", i)
		}
	}
}

// TestDeadlineIsMoved: a write moves a deadline that is near, and leaves one that is far.
func TestDeadlineIsMoved(t *testing.T) {
	c, _ := pair(t, WriteTimeout, stallAfter)
	for _, x := range []struct {
		set   time.Duration
		moved bool
	}{{time.Second, true}, {-time.Second, true}, {55 * time.Second, false}, {2 * time.Minute, false}} {
		before := time.Now().Add(x.set)
		_ = c.SetWriteDeadline(before)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if moved := !c.deadline.Equal(before); moved != x.moved {
			t.Errorf("a deadline in %s: moved %v", x.set, moved)
		}
	}
}
