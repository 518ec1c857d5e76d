package ws_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// A world is a whole server in memory. Clients reach it over connections without a
// buffer, so it works within [testing/synctest].
type world struct {
	*deck.Deck
	server *deck.Server
	line   *line
}

// A line is a listener to whose connections nothing but dial adds.
type line struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *line) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, errors.New("the line is closed")
	}
}

func (l *line) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *line) Addr() net.Addr { return &net.TCPAddr{} }

func (l *line) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, other := net.Pipe()
	select {
	case l.conns <- other:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newWorld starts a server with sessions.
func newWorld(t *testing.T, sessions ...string) *world {
	t.Helper()
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{d, d.NewServer(), &line{conns: make(chan net.Conn), closed: make(chan struct{})}}
	go func() { _ = w.server.Serve(w.line) }() // it ends with stop
	for _, id := range sessions {
		if _, err := d.Create(t.Context(), api.NewSession{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) stop(t *testing.T) {
	if err := w.server.Close(context.Background()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// A peer is a client that has received some frames.
type peer struct {
	*websocket.Conn
	got    chan string // messages, and at the end the reason why none follows
	frozen chan struct{}
}

// dial opens a socket. path is below /api/v1.
func (w *world) dial(t *testing.T, path string, protocols ...string) *peer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: w.line.dial}}
	c, resp, err := websocket.Dial(t.Context(), "ws://127.0.0.1/api/v1"+path, &websocket.DialOptions{HTTPClient: client, Subprotocols: protocols})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	c.SetReadLimit(-1)
	p := &peer{Conn: c, got: make(chan string, 10_000), frozen: make(chan struct{}, 1)}
	p.frozen <- struct{}{}
	go func() {
		for {
			_, r, err := c.Reader(context.Background())
			<-p.frozen
			p.frozen <- struct{}{}
			var b []byte
			if err == nil {
				b, err = io.ReadAll(r)
			}
			if err != nil {
				p.got <- fmt.Sprintf("close %d\n", websocket.CloseStatus(err))
				return
			}
			p.got <- strings.TrimSuffix(string(b), "\n") + "\n"
		}
	}()
	return p
}

func (p *peer) send(t *testing.T, message string) {
	t.Helper()
	if err := p.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Errorf("a message was not sent: %v", err)
	}
}

// freeze lets the client read nothing until the result is called.
func (p *peer) freeze() (thaw func()) {
	<-p.frozen
	return func() { p.frozen <- struct{}{} }
}

// received returns what has arrived until nothing happens any more.
func (p *peer) received() string {
	synctest.Wait()
	var b strings.Builder
	for {
		select {
		case m := <-p.got:
			b.WriteString(m)
		default:
			return b.String()
		}
	}
}

// ask sends a request without a WebSocket client and returns the head of the answer.
func (w *world) ask(t *testing.T, request string) string {
	t.Helper()
	c, err := w.line.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.Write([]byte(strings.ReplaceAll(request, "\n", "\r\n"))) }() // the server may not read all of it
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", resp.Status)
	for _, name := range []string{"Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Content-Type"} {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		body := new(strings.Builder)
		_ = resp.Write(body) // shown as far as it could be read
		_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
		fmt.Fprintf(&b, "\n%s", text)
	}
	return b.String()
}
