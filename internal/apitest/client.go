package apitest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/sse"
)

// A Client is a client of an event stream, without a network: so it works within
// [testing/synctest], where time passes only when all goroutines wait.
type Client struct {
	Status int
	Done   chan struct{} // closed when the handler has returned

	header http.Header
	cancel context.CancelFunc

	mu     sync.Mutex
	got    bytes.Buffer
	frozen chan struct{} // while it is not nil, writes to the client wait
}

// Watch opens a stream. target is a path below /api/v1/sessions/, headers are names
// and values in turn.
func Watch(t testing.TB, h http.Handler, target string, headers ...string) *Client {
	t.Helper()
	c := &Client{}
	c.Open(t, h, target, headers...)
	return c
}

// Open opens a stream as [Watch] does. The client keeps what it has received before.
func (c *Client) Open(t testing.TB, h http.Handler, target string, headers ...string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sessions/"+target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	c.Send(h, r)
}

// Send sends any request whose answer is a stream. The client keeps what it has
// received before.
func (c *Client) Send(h http.Handler, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	c.header, c.cancel, c.Done = http.Header{}, cancel, make(chan struct{})
	r = r.WithContext(ctx)
	go func() {
		defer close(c.Done)
		defer func() { // as net/http does
			p := recover()
			if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
		}()
		h.ServeHTTP(c, r)
	}()
}

// Disconnect closes the connection, as a closed tab does, and waits until the handler
// has returned.
func (c *Client) Disconnect() {
	c.cancel()
	<-c.Done
}

// Header implements [http.ResponseWriter].
func (c *Client) Header() http.Header { return c.header }

// WriteHeader implements [http.ResponseWriter].
func (c *Client) WriteHeader(status int) { c.Status = status }

// Flush implements [http.Flusher].
func (c *Client) Flush() {}

// SetWriteDeadline is for [http.ResponseController].
func (c *Client) SetWriteDeadline(time.Time) error { return nil }

// Write implements [http.ResponseWriter].
func (c *Client) Write(p []byte) (int, error) {
	c.mu.Lock()
	frozen := c.frozen
	c.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.Write(p)
}

// Freeze lets all writes to the client wait until the channel is closed.
func (c *Client) Freeze() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = make(chan struct{})
	return c.frozen
}

// Text returns everything that was received.
func (c *Client) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got.String()
}

// Frames returns the complete frames that were received.
func (c *Client) Frames(t testing.TB) []sse.Frame {
	t.Helper()
	var list []sse.Frame
	for f, err := range sse.Read(strings.NewReader(c.Text())) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// LastID returns the id that a browser would send as Last-Event-ID.
func (c *Client) LastID(t testing.TB) string {
	t.Helper()
	id := ""
	for _, f := range c.Frames(t) {
		if f.ID != "" {
			id = f.ID
		}
	}
	return id
}
