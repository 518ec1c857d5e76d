package server_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
)

// An importer reads ahead: when the body ends, it still handles earlier lines, and checks
// its context first.
type importer struct{ *engine.Engine }

func (importer) Import(ctx context.Context, _ api.ImportRequest, r io.Reader) (api.Imported, error) {
	_, err := io.ReadAll(r)
	return api.Imported{}, cmp.Or(ctx.Err(), err)
}

// withImporter is a server whose imports read ahead.
func withImporter() http.Handler {
	h := hub.New(memory.New(memory.Options{}))
	return server.New(server.Options{REST: rest.New(rest.Options{Sessions: h, Verbs: importer{}}), Durable: durable.New(durable.Options{Store: h}), AnyHost: true})
}

// TestSlowBodies: a body of a few bytes a second is refused. A body that keeps the lowest
// rate for minutes is read to its end.
func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		path                string
		length, piece, want int
	}{
		{"/v1/stream/a", 1000, 1, http.StatusRequestTimeout},
		{"/v1/stream/a", 100_000, 700, http.StatusRequestTimeout},
		{"/v1/stream/a", 300_000, 1100, http.StatusCreated},
		{"/api/v1/sessions/s/events", 1000, 1, http.StatusRequestTimeout},
		{"/api/v1/sessions", 1000, 1, http.StatusRequestTimeout},
		{"/api/v1/import", 1000, 1, http.StatusRequestTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, other := net.Pipe()
			defer conn.Close()
			l := &line{conn: make(chan net.Conn, 1)}
			l.conn <- other
			close(l.conn)
			_ = server.NewHTTP(withImporter(), slog.New(slog.DiscardHandler)).Serve(l) // the connection stays open
			method, contentType := http.MethodPost, "application/json"
			if strings.HasPrefix(c.path, "/v1") {
				method, contentType = http.MethodPut, "text/plain"
			}
			answer := make(chan int, 1)
			go func() {
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					answer <- 0
					return
				}
				answer <- resp.StatusCode
				_, _ = io.Copy(io.Discard, conn) // until the connection is closed
			}()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", method, c.path, contentType, c.length)
			for sent := 0; sent < c.length; sent += c.piece {
				if _, err := conn.Write(bytes.Repeat([]byte(" "), min(c.piece, c.length-sent))); err != nil {
					break
				}
				time.Sleep(time.Second) // of the bubble's clock
			}
			if got := <-answer; got != c.want {
				t.Errorf("%s, %d bytes with %d a second: %d, want %d", c.path, c.length, c.piece, got, c.want)
			}
		})
	}
}

// TestEncodedBodies: no protocol reads a compressed body as a plain one.
func TestEncodedBodies(t *testing.T) {
	h := withImporter()
	for _, path := range []string{"/api/v1/sessions", "/api/sessions", "/api/v1/import", "/api/v1/sessions/s/events", "/v1/stream/a", "/v1/stream/sessions/s"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x"+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), `"kind":"unsupported"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestConnectionLimit: a connection above the limit gets an answer, the log has a line, and
// when a connection ends, a new one is accepted.
func TestConnectionLimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s := server.NewHTTP(withImporter(), logger)
	served := make(chan error)
	go func() { served <- server.Serve(s, l, 2, logger) }()
	ask := func() (net.Conn, int) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute)) // so that a failure does not hang
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, resp.StatusCode
	}
	first, code := ask()
	second, code2 := ask()
	if code != 200 || code2 != 200 {
		t.Errorf("below the limit: %d, %d", code, code2)
	}
	for range 3 {
		c, code := ask()
		if c.Close(); code != http.StatusServiceUnavailable {
			t.Errorf("above the limit: %d", code)
		}
	}
	for range 200 { // those that ask for nothing keep nobody from an answer
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for n := range 100 { // an answer that comes before the request is no answer for the client of Go
		c := &http.Client{Transport: &http.Transport{}}
		resp, err := c.Post("http://"+l.Addr().String()+"/healthz", "text/plain", bytes.NewReader(make([]byte, n%4<<21)))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("above the limit: %d", resp.StatusCode)
		}
	}
	first.Close()
	for code = 0; code != 200; { // the server needs some time to see the end
		var c net.Conn
		if c, code = ask(); code != 200 {
			c.Close()
		} else {
			defer c.Close()
		}
	}
	second.Close()
	s.Close()
	<-served
	if n := strings.Count(log.String(), "connections were refused"); n != 1 {
		t.Errorf("the log has %d lines of it:\n%s", n, &log)
	}
}
