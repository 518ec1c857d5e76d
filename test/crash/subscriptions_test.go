package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestKillDuringDelivery kills the server with -9 while it delivers webhooks. No wake may
// begin above what the receiver was done with: then events would be lost. At the end the
// receiver was told of everything.
func TestKillDuringDelivery(t *testing.T) {
	n := *rounds
	if testing.Short() {
		n = min(n, 3)
	}
	h := &hook{t: t, done: map[string]string{}, told: make(chan struct{}, 1)}
	receiver := httptest.NewServer(h)
	defer receiver.Close()
	data := t.TempDir()
	var server atomic.Pointer[testserver.Server]
	start := func() { server.Store(testserver.Start(t, data, "--webhook-allow", "127.0.0.1")) }
	start()
	put(t, server.Load().URL+"/v1/stream/__ds/subscriptions/s", `{"type":"webhook","pattern":"crash/**","webhook":{"url":"`+receiver.URL+`"}}`)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() { writeMessages(ctx, &server, fmt.Sprint("/v1/stream/crash/", i)) })
	}
	h.flaky.Store(true)
	for range n {
		for range 1 + rand.IntN(5) {
			<-h.told // so that the kill comes during a delivery, or soon after it
		}
		server.Load().Kill()
		start()
	}
	stop()
	writing.Wait()
	h.flaky.Store(false)
	server.Load().Kill()
	start()
	deadline := time.After(2 * time.Minute)
	for i := range writers {
		path := fmt.Sprint("crash/", i)
		for end := headOf(t, server.Load().URL+"/v1/stream/"+path); h.at(path) < end; {
			select {
			case <-h.told:
			case <-deadline:
				t.Fatalf("of %s the receiver was told up to %q, and it ends at %s\n%s", path, h.at(path), end, server.Load().Log())
			}
		}
	}
	t.Logf("%d webhooks received", h.received.Load())
}

// A hook is a receiver of webhooks.
type hook struct {
	t        *testing.T
	flaky    atomic.Bool // it fails now and then
	told     chan struct{}
	received atomic.Int64

	mu   sync.Mutex
	done map[string]string // the end of what it was done with, by path
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var wake struct {
		Streams []struct {
			Path  string `json:"path"`
			Acked string `json:"acked_offset"`
			Tail  string `json:"tail_offset"`
		} `json:"streams"`
	}
	if err := json.NewDecoder(r.Body).Decode(&wake); err != nil {
		h.t.Errorf("a webhook without a body: %v", err)
		return
	}
	h.received.Add(1)
	fails := h.flaky.Load() && rand.IntN(10) == 0
	h.mu.Lock()
	for _, s := range wake.Streams {
		if s.Acked[:33] > max(h.done[s.Path], "0000000000000000_0000000000000000") {
			h.t.Errorf("a wake of %s begins at %s, but the receiver was done only with %q", s.Path, s.Acked, h.done[s.Path])
		}
		if !fails {
			h.done[s.Path] = max(h.done[s.Path], s.Tail)
		}
	}
	h.mu.Unlock()
	select {
	case h.told <- struct{}{}:
	default:
	}
	if fails {
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, `{"done":true}`)
}

func (h *hook) at(path string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done[path]
}

// writeMessages creates a stream and appends messages until ctx ends, whether the server
// answers or not.
func writeMessages(ctx context.Context, server *atomic.Pointer[testserver.Server], path string) {
	for ctx.Err() == nil {
		for _, method := range []string{http.MethodPut, http.MethodPost} {
			req, err := http.NewRequestWithContext(ctx, method, server.Load().URL+path, strings.NewReader(`{"n":1}`))
			if err != nil {
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
}

func put(t *testing.T, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
}

// headOf returns the offset at which a stream ends.
func headOf(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Head(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Stream-Next-Offset")
}
