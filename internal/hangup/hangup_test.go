package hangup_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/hangup"
)

// serve serves h and returns a connection to it.
func serve(t *testing.T, h http.HandlerFunc) (net.Conn, *bufio.Reader) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	served := make(chan error)
	go func() { served <- hangup.Serve(s, l, hangup.Limit{}) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // so that a failure does not hang
	t.Cleanup(func() {
		_, _ = c.Close(), s.Close()
		<-served
	})
	return c, bufio.NewReader(c)
}

func post(path, body string) string {
	return fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func answer(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// echo reads the body and ignores its client until it has answered.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	hangup.Ignore(r.Context())
	_, _ = w.Write(b)
}

// TestTheConnectionStaysUsable: requests of any size, one by one and pipelined, are
// answered in order.
func TestTheConnectionStaysUsable(t *testing.T) {
	c, r := serve(t, echo)
	for i := range 300 {
		bodies := []string{strings.Repeat("a", 10*i), fmt.Sprint("b", i), strings.Repeat("c", i*i/8)}
		for _, b := range bodies {
			if _, err := io.WriteString(c, post("", b)); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				continue
			}
			if got := answer(t, r); got != b {
				t.Fatalf("round %d: got %d bytes, want %d", i, len(got), len(b))
			}
		}
		for n := 0; i%2 == 0 && n < len(bodies); n++ {
			if got := answer(t, r); got != bodies[n] {
				t.Fatalf("round %d, at once: got %d bytes, want %d", i, len(got), len(bodies[n]))
			}
		}
	}
}

// TestOthersAreWatched: the next request on the connection learns that its client has
// disconnected.
func TestOthersAreWatched(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	c, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ignore" {
			echo(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	if _, err := io.WriteString(c, post("ignore", "a")); err != nil {
		t.Fatal(err)
	}
	answer(t, r)
	if _, err := io.WriteString(c, post("watch", "b")); err != nil {
		t.Fatal(err)
	}
	await(t, began)
	c.Close()
	await(t, ended)
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("it did not happen")
	}
}
