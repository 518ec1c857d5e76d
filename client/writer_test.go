package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// said is an event with a number.
func said(n int) tapedeck.Event {
	return tapedeck.Event{Type: "acme.said", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

// checkNumbers checks that a session has the numbers from 0 up to n once, in order.
func checkNumbers(t *testing.T, c *client.Client, session string, n int) {
	t.Helper()
	next := 0
	for from := int64(0); ; {
		p, err := c.Page(t.Context(), session, client.PageOptions{From: from, Types: []string{"acme.said"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Records {
			if !strings.Contains(string(r.Data), fmt.Sprintf(`"data":{"n":%d}`, next)) {
				t.Fatalf("number %d is missing at %s", next, r.Data)
			}
			next++
		}
		if from = p.Next; p.CaughtUp() {
			break
		}
	}
	if next != n {
		t.Errorf("%d events, want %d", next, n)
	}
}

// newWriterServer starts a server in memory with session s.
func newWriterServer(t *testing.T) (*client.Client, *httptest.Server) {
	t.Helper()
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.Handler())
	t.Cleanup(func() { server.Close(); _ = d.Close(context.Background()) })
	if _, err := d.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}

// TestWriterErrors: a refused append fails by its number, and those after it are stored.
func TestWriterErrors(t *testing.T) {
	c, _ := newWriterServer(t)
	var mu sync.Mutex
	var done []string
	w := c.NewWriter(t.Context(), "s", client.WriterOptions{OnDone: func(seq int64, a tapedeck.Appended, err error) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, fmt.Sprint(seq, a.First, err != nil))
	}})
	n := 0
	var want []string
	for i := range 300 {
		e := said(n)
		if i%100 == 50 {
			e = tapedeck.Event{Type: "TEXT_MESSAGE_END", Data: json.RawMessage(`{"messageId":"m"}`)}
			want = append(want, fmt.Sprint(i, -1, true))
		} else {
			n++
			want = append(want, fmt.Sprint(i, n, false))
		}
		if seq, err := w.Append(t.Context(), e); err != nil || seq != int64(i) {
			t.Fatalf("append %d has number %d, %v", i, seq, err)
		}
	}
	err := w.Flush(t.Context())
	var one *client.WriteError
	if !errors.As(err, &one) || one.Seq != 50 || tapedeck.KindOf(one) != tapedeck.Conflict || strings.Count(err.Error(), "was not stored") != 3 {
		t.Errorf("Flush: %v", err)
	}
	mu.Lock()
	if strings.Join(done, "\n") != strings.Join(want, "\n") {
		t.Errorf("done: %q\nwant: %q", done, want)
	}
	mu.Unlock()
	if err := w.Close(t.Context()); err != nil {
		t.Errorf("Close after Flush: %v", err)
	}
	if _, err := w.Append(t.Context(), said(0)); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("an append after Close: %v", err)
	}
	checkNumbers(t, c, "s", n)
}

// TestWriterRefused: a session that cannot be written to ends the writer.
func TestWriterRefused(t *testing.T) {
	c, _ := newWriterServer(t)
	w := c.NewWriter(t.Context(), "nobody", client.WriterOptions{})
	_, _ = w.Append(t.Context(), said(0)) // the writer may have ended already
	_ = w.Flush(t.Context())
	if _, err := w.Append(t.Context(), said(0)); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("an unknown session: %v", err)
	}
	_ = w.Close(t.Context())
	if _, err := c.CloseSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	w = c.NewWriter(t.Context(), "s", client.WriterOptions{})
	for i := range 3 {
		_, _ = w.Append(t.Context(), said(i))
	}
	if err := w.Close(t.Context()); tapedeck.KindOf(err) == "" || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed session: %v", err)
	}
	w = c.NewWriter(t.Context(), "s", client.WriterOptions{})
	big := tapedeck.Event{Type: "acme.said", Data: json.RawMessage(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`)}
	if _, err := w.Append(t.Context(), big); tapedeck.KindOf(err) != tapedeck.TooLarge {
		t.Errorf("a large append: %v", err)
	}
	if _, err := w.Append(t.Context(), tapedeck.Event{}); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("an event without a type: %v", err)
	}
	_ = w.Close(t.Context())
}

// A breaker is a proxy that breaks each connection after some bytes of an answer, often
// between a commit and its acknowledgement.
type breaker struct {
	to     string
	budget chan int
}

func (b *breaker) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, b.to)
	if err != nil {
		return nil, err
	}
	return &broken{c, <-b.budget}, nil
}

type broken struct {
	net.Conn
	left int
}

func (c *broken) Read(p []byte) (int, error) {
	if c.left <= 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// TestWriterReconnects: connections that break lose nothing and double nothing.
func TestWriterReconnects(t *testing.T) {
	c, server := newWriterServer(t)
	u, _ := url.Parse(server.URL)
	b := &breaker{to: u.Host, budget: make(chan int, 10)}
	for i := range 5 {
		b.budget <- 300 + 777*i
	}
	for range 5 {
		b.budget <- 1 << 30
	}
	through, err := client.New(server.URL, client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: b.dial}}))
	if err != nil {
		t.Fatal(err)
	}
	reconnects := 0
	w := through.NewWriter(t.Context(), "s", client.WriterOptions{MaxPending: 4 << 10, OnReconnect: func(int, error) { reconnects++ }})
	for i := range 1000 {
		if _, err := w.Append(t.Context(), said(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reconnects < 3 {
		t.Errorf("only %d connections broke", reconnects)
	}
	checkNumbers(t, c, "s", 1000)
}

// TestWriterSurvivesKill: a server that is killed while a writer writes loses nothing that
// was acknowledged, and has everything once in the end.
func TestWriterSurvivesKill(t *testing.T) {
	data := t.TempDir()
	s := testserver.Start(t, data)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	const events, kills = 60_000, 3
	acked := make(chan struct{}, kills)
	w := c.NewWriter(t.Context(), "s", client.WriterOptions{MaxPending: 256 << 10, OnDone: func(seq int64, _ tapedeck.Appended, err error) {
		if err != nil {
			t.Errorf("append %d: %v", seq, err)
		}
		if seq%(events/(kills+1)) == 1000 && seq > 1000 {
			acked <- struct{}{}
		}
	}})
	var killer sync.WaitGroup
	killer.Go(func() {
		address := strings.TrimPrefix(s.URL, "http://")
		for range kills {
			<-acked
			s.Kill()
			s = testserver.Start(t, data, "--listen", address)
		}
	})
	for i := range events {
		if _, err := w.Append(t.Context(), said(i)); err != nil {
			t.Fatal(err)
		}
	}
	killer.Wait()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkNumbers(t, c, "s", events)
}
