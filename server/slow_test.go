package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A line is a listener with one connection, which has no buffer: a write waits until it is
// read.
type line struct {
	net.Listener
	conn chan net.Conn
}

func (l *line) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, errors.New("the line has one connection")
}

func (l *line) Close() error   { return nil }
func (l *line) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowReaderKeepsItsConnection: a reader that stalls for most of a minute gets
// everything later. Meanwhile no append waits for it.
func TestSlowReaderKeepsItsConnection(t *testing.T) {
	for _, path := range []string{"/api/v1/sessions/s/stream", "/v1/stream/sessions/s?offset=-1&live=sse"} {
		synctest.Test(t, func(t *testing.T) {
			h := hub.New(memory.New(memory.Options{}))
			if _, err := h.Create(t.Context(), tapedeck.Spec{ID: "s"}); err != nil {
				t.Fatal(err)
			}
			handler := server.New(server.Options{REST: rest.New(rest.Options{Sessions: h}), Durable: durable.New(durable.Options{Store: h}), AnyHost: true})
			conn, other := net.Pipe()
			l := &line{conn: make(chan net.Conn, 1)}
			l.conn <- other
			close(l.conn)
			_ = (&http.Server{Handler: handler}).Serve(l) // the connection stays open
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			in, next := bufio.NewScanner(conn), 0
			read := func(to int) {
				for next < to && in.Scan() {
					for strings.Contains(in.Text(), fmt.Sprintf(`"offset":%d,`, next)) {
						next++
					}
				}
				if next != to {
					t.Fatalf("%s: the connection was lost at offset %d", path, next)
				}
			}
			write := func() {
				if _, err := h.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "acme.said"}}}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			write()
			read(1)
			begun := time.Now()
			for range 100 {
				write()
			}
			if time.Since(begun) != 0 {
				t.Error("who wrote had to wait")
			}
			time.Sleep(50 * time.Second)
			read(101)
			_ = conn.Close()
		})
	}
}
