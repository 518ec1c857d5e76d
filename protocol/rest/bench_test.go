package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// counting is a client that discards what it receives, and counts the writes.
type counting struct {
	header http.Header
	wrote  func()
}

func (c *counting) Header() http.Header              { return c.header }
func (c *counting) WriteHeader(int)                  {}
func (c *counting) Write(p []byte) (int, error)      { c.wrote(); return len(p), nil }
func (c *counting) Flush()                           {}
func (c *counting) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkFanOut measures one append until it was written to a thousand followers.
func BenchmarkFanOut(b *testing.B) {
	for _, size := range []int{256, 100_000} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) { fanOut(b, size) })
	}
}

func fanOut(b *testing.B, size int) {
	const followers = 1000
	handler, g := newHandler(rest.Options{})
	ctx, cancel := context.WithCancel(b.Context())
	var left, round sync.WaitGroup
	defer left.Wait()
	defer cancel()
	g.session(b, "s", 0)
	round.Add(followers)
	for range followers {
		left.Go(func() {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/stream", nil).WithContext(ctx)
			handler.ServeHTTP(&counting{http.Header{}, round.Done}, r)
		})
	}
	round.Wait()
	data := []byte(`{"messageId":"m","delta":"` + strings.Repeat("x", size) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		round.Add(followers)
		g.append(b, "s", tapedeck.Event{Type: tapedeck.TextMessageContent, Data: data})
		round.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/followers, "ns/follower")
}

// BenchmarkCatchUp sends 10,000 events to one client.
func BenchmarkCatchUp(b *testing.B) {
	for name, query := range map[string]string{"all": "", "filtered": "&channel=toolCalls"} {
		b.Run(name, func(b *testing.B) {
			handler, g := newHandler(rest.Options{})
			g.session(b, "s", 0)
			events := make([]tapedeck.Event, 10_000)
			for i := range events {
				events[i] = tapedeck.Event{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"m","delta":"a few words of text"}`)}
			}
			g.append(b, "s", events...)
			if err := g.Close(b.Context(), "s", ""); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/stream?from=0"+query, nil)
				handler.ServeHTTP(&counting{http.Header{}, func() {}}, r)
			}
		})
	}
}

// BenchmarkAppend appends one event, without the work of a disk.
func BenchmarkAppend(b *testing.B) {
	handler, g := newHandler(rest.Options{})
	g.session(b, "s", 0)
	body := `{"type":"TEXT_MESSAGE_CONTENT","invocation":"inv_1","data":{"messageId":"m","delta":"` + strings.Repeat("x", 200) + `"}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/sessions/s/events", strings.NewReader(body))
		r.Header.Set("Content-Type", asJSON)
		handler.ServeHTTP(&counting{http.Header{}, func() {}}, r)
	}
}

// BenchmarkSnapshot shows the conversation of 100,000 events: folded from the start, and
// continued.
func BenchmarkSnapshot(b *testing.B) {
	handler, g := newHandler(rest.Options{})
	g.session(b, "s", 0)
	events := make([]tapedeck.Event, 1000)
	for i := range 100 {
		for j := range events {
			events[j] = say(fmt.Sprintf("m%d", i*10+j/100), "a few words of text ")
		}
		g.append(b, "s", events...)
	}
	for name, path := range map[string]string{"from the start": "s/snapshot?at=100001", "continued": "s/snapshot"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/"+path, nil)
				handler.ServeHTTP(&counting{http.Header{}, func() {}}, r)
			}
		})
	}
}
