//go:build !race

package memory

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// TestStackOfFollower checks that a follower that waits needs stacks of 10 KiB: 8 for its
// request and 2 for the goroutine of net/http that waits for the end of the connection.
// Larger frames on the way of a request would make it 18 KiB. The race detector makes all
// frames larger.
func TestStackOfFollower(t *testing.T) {
	const followers, limit = 300, 12 << 10
	for _, path := range []string{"/api/v1/sessions/s/stream", "/v1/stream/sessions/s?offset=-1&live=sse"} {
		d, err := deck.Open(t.Context(), t.TempDir(), deck.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s, served := d.NewServer(), make(chan error)
		go func() { served <- s.Serve(l) }()
		before := stacks()
		conns := make([]net.Conn, followers)
		for i := range conns {
			if conns[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conns[i], "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		}
		for _, c := range conns {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		each := (stacks() - before) / followers
		t.Logf("%s: %d bytes", path, each)
		if each > limit {
			t.Errorf("%s: a follower has stacks of %d bytes, more than %d", path, each, limit)
		}
		for _, c := range conns {
			_ = c.Close()
		}
		if err := errors.Join(s.Close(t.Context()), <-served); err != nil {
			t.Fatal(err)
		}
	}
}

// stacks returns the size of all stacks in bytes, after the garbage collector has made
// them as small as it does.
func stacks() int64 {
	for range 4 { // each halves the size at most
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse)
}
