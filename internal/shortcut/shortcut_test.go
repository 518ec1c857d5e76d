package shortcut_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/shortcut"
)

// A world is an http.Server behind a listener, and what has reached it.
type world struct {
	listener *shortcut.Listener
	server   *http.Server
	short    atomic.Int64 // requests by the shortcut
	long     atomic.Int64 // and by the server
	enter    chan struct{}
	leave    chan struct{}
}

// newWorld starts a server that echoes bodies. Its paths do what they are called.
func newWorld(t *testing.T) *world {
	w := &world{enter: make(chan struct{}), leave: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ErrorLog: log.New(io.Discard, "", 0)}
	w.listener = shortcut.New(l, shortcut.Options{Handler: w.server.Handler, Takes: func(method, path string) bool {
		return method == http.MethodPost && path != "/long"
	}})
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(w.listener) }()
	t.Cleanup(func() {
		w.listener.Finish()
		_ = w.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if r.Context().Value(http.ServerContextKey) == nil {
		w.short.Add(1)
	} else {
		w.long.Add(1)
	}
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/panic":
		panic(http.ErrAbortHandler)
	case "/wait":
		w.enter <- struct{}{}
		<-w.leave
	case "/nothing":
		rw.WriteHeader(http.StatusNoContent)
		return
	case "/last":
		rw.Header().Set("Connection", "close")
	case "/split":
		rw.Header().Set("X-Split", "a\r\nX-Injected: b")
	}
	_, _ = rw.Write(body)
}

func (w *world) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", w.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c, bufio.NewReader(c)
}

func request(method, path, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
}

// expect reads an answer.
func expect(t *testing.T, r *bufio.Reader, status int, body string) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || string(got) != body {
		t.Fatalf("%d %q (%v), want %d %q", resp.StatusCode, got, err, status, body)
	}
	if _, err := http.ParseTime(resp.Header.Get("Date")); err != nil {
		t.Error(err)
	}
	return resp
}

func (w *world) counts(t *testing.T, short, long int64) {
	t.Helper()
	if s, l := w.short.Load(), w.long.Load(); s != short || l != long {
		t.Errorf("%d requests took the shortcut and %d did not, want %d and %d", s, l, short, long)
	}
}

func TestShortRequestsUntilAnotherComes(t *testing.T) {
	w := newWorld(t)
	c, r := w.dial(t)
	for i := range 3 {
		body := fmt.Sprint("body ", i)
		fmt.Fprint(c, request("POST", "/echo", body))
		expect(t, r, 200, body)
	}
	w.counts(t, 3, 0)
	// All at once, the last two of them the server's, in order.
	fmt.Fprint(c, request("POST", "/echo", "a"), request("POST", "/nothing", ""), request("GET", "/echo", "c"), request("POST", "/echo", "d"))
	expect(t, r, 200, "a")
	expect(t, r, 204, "")
	expect(t, r, 200, "c")
	expect(t, r, 200, "d")
	w.counts(t, 5, 2)
}

// TestABodyIsNotARequest: what the server reads is never looked at.
func TestABodyIsNotARequest(t *testing.T) {
	w := newWorld(t)
	c, r := w.dial(t)
	inner := request("POST", "/echo", "inner")
	fmt.Fprintf(c, "POST /long HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(inner))
	fmt.Fprint(c, inner)
	expect(t, r, 200, inner)
	fmt.Fprintf(c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)
	expect(t, r, 200, inner)
	w.counts(t, 0, 2)
}

func TestRequestsInPieces(t *testing.T) {
	w := newWorld(t)
	c, r := w.dial(t)
	for range 2 {
		for _, b := range []byte(request("POST", "/echo", "piece by piece")) {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, r, 200, "piece by piece")
	}
	w.counts(t, 2, 0)
}

func TestTooLongIsForTheServer(t *testing.T) {
	for _, body := range []string{strings.Repeat("x", 8<<10), strings.Repeat("x", 100_000)} {
		w := newWorld(t)
		c, r := w.dial(t)
		fmt.Fprint(c, request("POST", "/echo", "short"))
		expect(t, r, 200, "short")
		fmt.Fprint(c, request("POST", "/echo", body))
		expect(t, r, 200, body)
		w.counts(t, 1, 1)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	c, r := w.dial(t)
	fmt.Fprint(c, request("POST", "/split", "<html>"))
	resp := expect(t, r, 200, "<html>")
	if resp.Header.Get("X-Injected") != "" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%v", resp.Header)
	}
	fmt.Fprint(c, request("POST", "/last", "bye"))
	expect(t, r, 200, "bye")
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	c, r = w.dial(t)
	fmt.Fprint(c, request("POST", "/panic", ""))
	if _, err := r.ReadByte(); err == nil {
		t.Error("a panic is answered")
	}
}

// TestStopping: who waits for an answer gets it, and then the connection ends.
func TestStopping(t *testing.T) {
	for name, stop := range map[string]func(*world) error{
		"finish": func(w *world) error { w.listener.Finish(); return nil },
		"close":  func(w *world) error { return w.server.Close() },
		"both": func(w *world) error {
			w.listener.Finish()
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // it begins to close connections, and waits for none
			_ = w.server.Shutdown(ctx)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			idle, idleAnswers := w.dial(t)
			fmt.Fprint(idle, request("POST", "/echo", "idle"))
			expect(t, idleAnswers, 200, "idle")
			c, r := w.dial(t)
			fmt.Fprint(c, request("POST", "/wait", "busy"), request("POST", "/echo", "too late"))
			<-w.enter
			if err := stop(w); err != nil {
				t.Fatal(err)
			}
			if _, err := idleAnswers.ReadByte(); err == nil {
				t.Error("the idle connection is open")
			}
			close(w.leave)
			expect(t, r, 200, "busy")
			if _, err := r.ReadByte(); err == nil {
				t.Error("after the answer the connection is open")
			}
			w.counts(t, 2, 0)
		})
	}
}

func TestConnectionsThatAreTheServersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	c, r := w.dial(t)
	fmt.Fprint(c, request("GET", "/echo", "a"))
	expect(t, r, 200, "a")
	w.listener.Finish()
	fmt.Fprint(c, request("POST", "/echo", "b"))
	expect(t, r, 200, "b")
	w.counts(t, 0, 2)
}

func TestTimeouts(t *testing.T) {
	for name, begin := range map[string]string{"idle": "", "half a request": request("POST", "/echo", "half")[:20]} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			s := &http.Server{Handler: handler}
			go func() {
				_ = s.Serve(shortcut.New(l, shortcut.Options{
					Handler: handler, Takes: func(string, string) bool { return true },
					HeaderTimeout: time.Millisecond, IdleTimeout: time.Millisecond,
				}))
			}()
			defer s.Close()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			fmt.Fprint(c, request("POST", "/", ""))
			expect(t, r, 200, "")
			fmt.Fprint(c, begin)
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}
