package subscription

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/tail"
)

// deadEnd is a webhook that never answers.
type deadEnd struct{}

func (deadEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// benchDispatcher runs a dispatcher on a store in a folder.
func benchDispatcher(b *testing.B) (*hub.Hub, *Dispatcher) {
	s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := hub.New(tail.New(64 << 20).Layer(s))
	d := New(Options{Log: h, Store: s.Subscriptions(), Transport: deadEnd{}})
	h.Observe(d.Observer())
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	b.Cleanup(func() { cancel(); <-ended; s.Close() })
	return h, d
}

func benchPut(b *testing.B, d *Dispatcher, id, filter string) {
	c := config{Type: typeWebhook, URL: "https://hook.example", Pattern: "**", Filter: filter, Lease: maxLease}
	if _, _, err := d.put(b.Context(), id, c, "http://deck"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppend appends events with 16 writers: without subscriptions, with one whose
// webhook never answers, and with ten that look for the ends of runs.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name   string
		n      int
		filter string
	}{{"none", 0, ""}, {"webhook", 1, ""}, {"filters", 10, "run-finished"}} {
		b.Run(c.name, func(b *testing.B) {
			h, d := benchDispatcher(b)
			for i := range c.n {
				benchPut(b, d, fmt.Sprint("s", i), c.filter)
			}
			for i := range 16 {
				if _, err := h.Create(b.Context(), tapedeck.Spec{ID: fmt.Sprint("s", i), Kind: tapedeck.KindSession}); err != nil {
					b.Fatal(err)
				}
			}
			var next atomic.Int64
			b.SetParallelism(8)
			began := time.Now()
			b.RunParallel(func(p *testing.PB) {
				id := fmt.Sprint("s", next.Add(1)%16)
				events := []tapedeck.Event{{Type: "TEXT_MESSAGE_CONTENT", Invocation: "i", Data: []byte(`{"messageId":"m","delta":"a few words of an answer"}`)}}
				for p.Next() {
					if _, err := h.Append(b.Context(), tapedeck.Append{Session: id, Events: events}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "appends/s")
		})
	}
}

// BenchmarkCreate creates a subscription that watches 10,000 streams.
func BenchmarkCreate(b *testing.B) {
	h, d := benchDispatcher(b)
	for i := range 10_000 {
		id := fmt.Sprint("stream/s", i)
		if _, err := h.Create(b.Context(), tapedeck.Spec{ID: id, Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{{1}}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		benchPut(b, d, "s", "")
		if err := d.drop(b.Context(), "s"); err != nil {
			b.Fatal(err)
		}
	}
}
