package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// A sender has an open body and reads the answers to its lines.
type sender struct {
	body    *io.PipeWriter
	answers *bufio.Scanner
	status  int
}

// newSenders starts a server with session s. The result opens a body.
func newSenders(t *testing.T) (open func(path string, header ...string) *sender, stop func()) {
	t.Helper()
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := d.NewServer()
	go func() { _ = server.Serve(l) }() // it ends with stop
	if _, err := d.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = server.Close(context.Background()) }
	t.Cleanup(stop)
	return func(path string, header ...string) *sender {
		body, w := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/api/v1"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-ndjson")
		r.Header.Set("Accept", "application/x-ndjson")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return &sender{w, bufio.NewScanner(resp.Body), resp.StatusCode}
	}, stop
}

// expect compares the next answers; "" is the end of them.
func (s *sender) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		got := ""
		if s.answers.Scan() {
			got = s.answers.Text()
		}
		if w == "" && got != "" || !strings.Contains(got, w) {
			t.Fatalf("got %q, want %q", got, w)
		}
	}
}

func (s *sender) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.body, text); err != nil {
		t.Fatal(err)
	}
}

// TestOpenBody: each line is answered while the body is open.
func TestOpenBody(t *testing.T) {
	open, _ := newSenders(t)
	s := open("/sessions/s/events", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0", "If-Match", `"1"`)
	s.send(t, `{"type":"acme.said","data":{"n":1}}`+"\n")
	s.expect(t, `{"type":"ack","seq":0,"session":"s","first":1,"last":1,"head":2}`)
	s.send(t, "\n"+`[{"type":"acme.said"},{"type":"acme.said"}]`+"\n"+`{"type":"acme.said"}`+"\n"+`{"type":"session.closed"}`+"\n")
	s.expect(t, `"seq":1,"session":"s","first":2,"last":3`, `"seq":2,"session":"s","first":4`, `{"type":"error","seq":3,"session":"s","error":{"kind":"invalid"`)
	s.send(t, `{"type":"acme.said"}`+"\n") // the producer has skipped a number
	s.expect(t, `"refusal":"gap"`)
	s.send(t, `{"type":"acme.said"}`) // without a line end
	_ = s.body.Close()
	s.expect(t, `"seq":5`, "")

	s = open("/sessions/s/events", "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "1")
	s.send(t, `{"type":"acme.said"}`+"\n"+`{"type":"acme.said"}`+"\n"+`{"type":"acme.said"}`+"\n")
	s.expect(t, `"duplicate":true`, `"duplicate":true`, `"seq":2,"session":"s","first":5,"last":5`)
	_ = s.body.Close()
	s.expect(t, "")
}

func TestOpenBodyHostile(t *testing.T) {
	open, stop := newSenders(t)
	for line, want := range map[string]string{
		"hello\n": "append 1", "{}x\n": "append 1", "[1]\n": "append 1", `{"type":"a","extra":1}` + "\n": "append 1",
		`["` + strings.Repeat("x", 9<<20) + "\n": "too_large",
	} {
		s := open("/sessions/s/events")
		go func() { _, _ = io.WriteString(s.body, `{"type":"acme.said"}`+"\n"+line+`{"type":"acme.said"}`+"\n") }() // the server does not read all of it
		s.expect(t, `"seq":0`, want, "")
		_ = s.body.Close()
	}
	if s := open("/sessions/nobody/events"); s.status != http.StatusNotFound {
		t.Errorf("an unknown session: %d", s.status)
	}
	s := open("/sessions/s/events")
	s.send(t, `{"type":"acme.said"}`+"\n")
	s.expect(t, `"seq":0`)
	go stop()
	s.expect(t, `the server stops`, "")
}

// TestOpenBodyRefused: a refused body ends its connection in order, so that no later
// request is sent on it.
func TestOpenBodyRefused(t *testing.T) {
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	server := httptest.NewUnstartedServer(d.Handler())
	server.Config.ErrorLog = log.New(&said, "", 0)
	server.Start()
	for range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/v1/sessions/nobody/events", strings.NewReader(`{"type":"acme.said"}`+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-ndjson")
		r.Header.Set("Accept", "application/x-ndjson")
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound || !resp.Close {
			t.Errorf("status %d, the connection stays open: %v", resp.StatusCode, !resp.Close)
		}
	}
	server.Close()
	if said.Len() > 0 {
		t.Errorf("net/http says %s", &said)
	}
}

// A pipeListener has one connection, without a buffer.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestOpenBodyWaits: a body may be silent between two lines, but not within one.
func TestOpenBodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		l := pipeListener{make(chan net.Conn, 1)}
		conn, other := net.Pipe()
		l.conns <- other
		close(l.conns)
		server := d.NewServer()
		_ = server.Serve(l) // the connection stays open
		defer func() { _ = server.Close(context.Background()) }()
		if _, err := d.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		done := make(chan struct{})
		go func() { defer close(done); _, _ = io.Copy(&got, conn) }() // until the server closes the connection
		write := func(head, text string) {
			_, _ = io.WriteString(conn, head+fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) // the answers show what has arrived
			synctest.Wait()
		}
		line := `{"type":"acme.said"}` + "\n"
		write("POST /api/v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n", line)
		time.Sleep(10 * time.Minute)
		write("", line)
		time.Sleep(10 * time.Minute)
		write("", line[:5])
		time.Sleep(time.Minute)
		_ = conn.Close()
		<-done
		for _, want := range []string{`{"type":"ack","seq":0,`, `{"type":"ack","seq":1,`, `arrived too slowly`} {
			if !strings.Contains(got.String(), want) {
				t.Errorf("%s is missing in %s", want, &got)
			}
		}
	})
}
