package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

func TestStreamBeginsWithHistoryAndGoesOnLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 2)
		s := watch(t, handler, "s/stream")
		synctest.Wait()
		if s.Status != http.StatusOK || s.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Fatalf("%d %v", s.Status, s.Header())
		}
		if !strings.HasPrefix(s.Text(), "retry: 1000\n\n") {
			t.Errorf("it begins with %.40q", s.Text())
		}
		g.say(t, "s", 2)
		synctest.Wait()
		if got := offsets(t, s); !slices.Equal(got, count(0, 5)) {
			t.Errorf("events %v", got)
		}
		if got := notes(t, s); got != `caught-up{"next":3}` {
			t.Errorf("notes %s", got)
		}
		s.Disconnect()
	})
}

// Wherever a connection is lost, the next one continues after the last event that arrived:
// each event arrives once.
func TestResumeAtEveryPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 19)
		for last := range int64(20) {
			for _, way := range []func() *apitest.Client{
				func() *apitest.Client { return watch(t, handler, "s/stream", "Last-Event-ID", fmt.Sprint(last)) },
				func() *apitest.Client { return watch(t, handler, fmt.Sprintf("s/stream?lastEventId=%d", last)) },
				func() *apitest.Client { return watch(t, handler, fmt.Sprintf("s/stream?fromOffset=%d", last+1)) },
			} {
				s := way()
				synctest.Wait()
				if got := offsets(t, s); !slices.Equal(got, count(last+1, 20)) {
					t.Errorf("after event %d: %v", last, got)
				}
				s.Disconnect()
			}
		}
	})
}

// A client that loses its connection many times during appends receives each event once,
// with a filter and without.
func TestReconnectsLoseNothing(t *testing.T) {
	for _, filter := range []string{"", "?channel=chunks", "?type=acme.rare", "?type=acme.never"} {
		t.Run(filter, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { reconnect(t, filter) })
		})
	}
}

func reconnect(t *testing.T, filter string) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	want := []int64{}
	var s apitest.Client
	for i := int64(1); i <= 100; i++ {
		s.Open(t, handler, "s/stream"+filter, "Last-Event-ID", s.LastID(t))
		if i%3 == 0 {
			synctest.Wait() // it has caught up
		}
		typ := "acme.said"
		if i%7 == 0 {
			typ = "acme.rare"
		}
		g.append(t, "s", tapedeck.Event{Type: typ, Channel: tapedeck.ChannelChunks})
		if i%2 == 0 {
			synctest.Wait() // it has received that
		}
		s.Disconnect()
		if strings.Contains(filter, "type") && typ != strings.TrimPrefix(filter, "?type=") {
			continue
		}
		want = append(want, i)
	}
	s.Open(t, handler, "s/stream"+filter, "Last-Event-ID", s.LastID(t))
	synctest.Wait()
	s.Disconnect()
	if !strings.Contains(filter, "type") {
		want = append([]int64{0}, want...) // session.created
	}
	if got := offsets(t, &s); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	seen := map[string]bool{}
	for _, f := range s.Frames(t) {
		if f.ID != "" && seen[f.ID] {
			t.Errorf("id %s came twice", f.ID)
		}
		seen[f.ID] = true
	}
}

func TestHeartbeats(t *testing.T) {
	for _, filter := range []string{"", "?type=acme.never"} {
		synctest.Test(t, func(t *testing.T) {
			handler, g := newHandler(rest.Options{})
			g.session(t, "s", 0)
			s := watch(t, handler, "s/stream"+filter)
			for range 12 { // a minute; with a filter no event of it passes
				<-time.After(5 * time.Second) // of the bubble's time
				if filter != "" {
					g.say(t, "s", 1)
				}
			}
			synctest.Wait()
			if n := strings.Count(s.Text(), ": heartbeat\n\n"); n < 4 || n > 8 {
				t.Errorf("filter %q: %d heartbeats in a minute", filter, n)
			}
			s.Disconnect()
		})
	}
}

// A client that disconnects from a stream of any kind cancels nothing.
func TestDisconnectCancelsNothing(t *testing.T) {
	for _, query := range []string{"", "?until=terminal", "?presence=live"} {
		synctest.Test(t, func(t *testing.T) {
			handler, g := newHandler(rest.Options{})
			started, err := g.Start(t.Context(), api.Task{Text: "go"})
			if err != nil {
				t.Fatal(err)
			}
			s := watch(t, handler, started.Session+"/stream"+query)
			synctest.Wait()
			s.Disconnect()
			synctest.Wait()
			if head, err := g.Head(t.Context(), started.Session); err != nil || len(head.Runs) != 1 {
				t.Errorf("%q: after the disconnect the runs are %v, %v", query, head.Runs, err)
			}
		})
	}
}

// A stalled reader delays no append and no other reader, and misses no event.
func TestSlowReaderIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 0)
		slow, quick := watch(t, handler, "s/stream"), watch(t, handler, "s/stream")
		synctest.Wait()
		thaw := slow.Freeze()
		begun := time.Now()
		g.say(t, "s", 3000)
		synctest.Wait()
		if time.Since(begun) != 0 {
			t.Error("the writer had to wait")
		}
		if got := len(offsets(t, quick)); got != 3001 {
			t.Errorf("the quick reader has %d events", got)
		}
		if got := len(offsets(t, slow)); got != 1 {
			t.Errorf("the slow reader has %d events", got)
		}
		close(thaw)
		synctest.Wait()
		if got := offsets(t, slow); !slices.Equal(got, count(0, 3001)) {
			t.Errorf("the slow reader has %d events", len(got))
		}
		slow.Disconnect()
		quick.Disconnect()
	})
}

func TestThousandFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 0)
		screens := make([]*apitest.Client, 1000)
		for i := range screens {
			screens[i] = watch(t, handler, "s/stream")
		}
		synctest.Wait()
		if n := g.Followers(); n != 1000 {
			t.Errorf("%d followers", n)
		}
		g.say(t, "s", 5)
		synctest.Wait()
		for i, s := range screens {
			if got := offsets(t, s); !slices.Equal(got, count(0, 6)) {
				t.Fatalf("follower %d has %v", i, got)
			}
			s.Disconnect()
		}
		if n := g.Followers(); n != 0 {
			t.Errorf("%d followers are left", n)
		}
	})
}

func TestFilteredStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 0)
		s := watch(t, handler, "s/events?channel=toolCalls&thread=side", "Accept", "text/event-stream")
		synctest.Wait()
		for _, e := range []tapedeck.Event{
			{Type: tapedeck.ToolCallEnd, Thread: "side"},                            // 1
			{Type: tapedeck.ToolCallEnd},                                            // another thread
			{Type: tapedeck.TextMessageEnd, Thread: "side"},                         // another channel
			{Type: tapedeck.SessionRenamed, Data: json.RawMessage(`{"title":"x"}`)}, // 4, always
		} {
			g.append(t, "s", e)
		}
		synctest.Wait()
		if got := offsets(t, s); !slices.Equal(got, []int64{0, 1, 4}) {
			t.Errorf("got %v", got)
		}
		s.Disconnect()
	})
}

func runEvent(typ, invocation string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Invocation: invocation, Data: json.RawMessage(`{"threadId":"t","runId":"` + invocation + `","message":"m"}`)}
}

func TestUntilTerminal(t *testing.T) {
	for _, c := range []struct {
		name, query string
		want        []int64
		notes       string
	}{
		{"of the next run", "", count(0, 4), `caught-up{"next":1} end{"next":4,"reason":"terminal"}`},
		{"of an invocation", "&invocation=b", []int64{2, 5}, `0caught-up{"next":1} end{"next":6,"reason":"terminal"}`},
		{"that a filter holds back", "&type=acme.said", nil, `0caught-up{"next":1} 3end{"next":4,"reason":"terminal"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, g := newHandler(rest.Options{})
				g.session(t, "s", 0)
				s := watch(t, handler, "s/stream?until=terminal"+c.query)
				synctest.Wait()
				g.append(t, "s", runEvent(tapedeck.RunStarted, "a"))
				g.append(t, "s", runEvent(tapedeck.RunStarted, "b"))
				g.append(t, "s", runEvent(tapedeck.RunError, "a"))
				g.append(t, "s", tapedeck.Event{Type: "acme.said"})
				g.append(t, "s", runEvent(tapedeck.RunFinished, "b"))
				<-s.Done
				if got := notes(t, s); got != c.notes {
					t.Errorf("notes %s, want %s", got, c.notes)
				}
				if got := offsets(t, s); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				again := watch(t, handler, "s/stream?until=terminal"+c.query, "Last-Event-ID", s.LastID(t))
				<-again.Done
				if again.Status != http.StatusNoContent {
					t.Errorf("a reconnect after the end gets %d: an EventSource would go on for ever", again.Status)
				}
			})
		})
	}
}

func TestStreamEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 1)
		plain, filtered := watch(t, handler, "s/stream"), watch(t, handler, "s/stream?type=acme.never")
		synctest.Wait()
		if err := g.Close(t.Context(), "s", ""); err != nil {
			t.Fatal(err)
		}
		<-plain.Done
		<-filtered.Done
		if got := notes(t, plain); got != `caught-up{"next":2} end{"next":3,"reason":"closed"}` {
			t.Errorf("notes %s", got)
		}
		if got := notes(t, filtered); got != `1caught-up{"next":2} 2end{"next":3,"reason":"closed"}` {
			t.Errorf("notes with a filter %s", got)
		}
		for _, s := range []*apitest.Client{plain, filtered} {
			again := watch(t, handler, "s/stream", "Last-Event-ID", s.LastID(t))
			if <-again.Done; again.Status != http.StatusNoContent {
				t.Errorf("a reconnect gets %d", again.Status)
			}
		}
	})
}

func TestStreamEndsWhenItsSessionIsDeleted(t *testing.T) {
	for name, recreated := range map[string]bool{"deleted": false, "deleted and recreated": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, g := newHandler(rest.Options{})
				g.session(t, "s", 1)
				s := watch(t, handler, "s/stream")
				synctest.Wait()
				if err := g.Delete(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if recreated {
					g.session(t, "s", 5)
				}
				<-s.Done
				if got := notes(t, s); got != `caught-up{"next":2} end{"reason":"deleted"}` {
					t.Errorf("notes %s", got)
				}
				if got := offsets(t, s); !slices.Equal(got, count(0, 2)) {
					t.Errorf("events %v", got)
				}
			})
		})
	}
}

// Over a real connection the headers arrive at once, and a disconnect is noticed at once.
func TestDisconnectReleasesTheFollower(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	var left sync.WaitGroup
	left.Add(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer left.Done()
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	g.session(t, "s", 1)
	resp, err := http.Get(server.URL + "/api/v1/sessions/s/stream")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for f, err := range sse.Read(resp.Body) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Event == "caught-up" {
			g.say(t, "s", 1)
		}
		if f.Event == "" {
			seen++
		}
		if seen == 3 {
			break
		}
	}
	if n := g.Followers(); n != 1 {
		t.Errorf("%d followers", n)
	}
	_ = resp.Body.Close()
	left.Wait()
	if n := g.Followers(); n != 0 {
		t.Errorf("%d followers are left", n)
	}
	if s, err := g.Head(t.Context(), "s"); err != nil || s.Head != 3 {
		t.Errorf("the session is at %d, %v", s.Head, err)
	}
}

// A stream that has ended leaves no deadline on its connection.
func TestConnectionIsGoodAfterAStream(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	var deadlines []time.Time
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(deadlineSpy{w, func(at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			deadlines = append(deadlines, at)
		}}, r)
	}))
	defer server.Close()
	g.session(t, "s", 1)
	if err := g.Close(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(server.URL + "/api/v1/sessions/s/stream")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	mu.Lock()
	defer mu.Unlock()
	if n := len(deadlines); n < 2 || !deadlines[n-1].IsZero() {
		t.Errorf("write deadlines %v; the last one must be none", deadlines)
	}
}

type deadlineSpy struct {
	http.ResponseWriter
	set func(time.Time)
}

func (d deadlineSpy) SetWriteDeadline(at time.Time) error {
	d.set(at)
	return http.NewResponseController(d.ResponseWriter).SetWriteDeadline(at)
}

func (d deadlineSpy) Flush() { _ = http.NewResponseController(d.ResponseWriter).Flush() }
