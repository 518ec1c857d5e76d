package durable_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/durable"
)

// A client is a client of a live read, with the bytes that it has received.
type client struct {
	mu     sync.Mutex
	header http.Header
	status int
	text   bytes.Buffer
	writes []*byte // the first byte of each write
	done   bool
	leave  context.CancelFunc
}

func (s *client) Header() http.Header { return s.header }
func (s *client) Flush()              {}

func (s *client) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *client) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, &b[0])
	return s.text.Write(b)
}

// take returns the bytes that arrived since it was last called. In a bubble of synctest it
// waits until all goroutines wait.
func (s *client) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

func (s *client) ended() bool {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// watch begins a live read.
func watch(t *testing.T, handler http.Handler, path string, headers ...string) *client {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &client{header: http.Header{}, status: 200, leave: leave}
	r := httptest.NewRequest("GET", "/v1/stream/"+path, nil).WithContext(ctx)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		handler.ServeHTTP(s, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = true
	}()
	return s
}

// decodeEvents returns the data of the data events in an event stream. As the standard says, it
// takes one space after the colon away.
func decodeEvents(t testing.TB, stream string, encoded bool) string {
	t.Helper()
	var out strings.Builder
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data := "", []string{}
		for line := range strings.SplitSeq(event, "\n") {
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "event":
				name = value
			case "data":
				data = append(data, value)
			}
		}
		if name != "data" {
			continue
		}
		text := strings.Join(data, "\n")
		if encoded {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			text = string(b)
		}
		out.WriteString(text)
	}
	return out.String()
}

const tail0 = "id: 0000000000000000_0000000000000000_1\nevent: control\n" +
	`data:{"streamNextOffset":"0000000000000000_0000000000000000_1","streamCursor":"%d","upToDate":true}` + "\n\n"

func cursorNow() int64 {
	return max(0, int64(time.Since(time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC))/(20*time.Second)))
}

// A quiet connection sends heartbeats, and ends after a minute.
func TestQuietConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "", asText...)
		began := time.Now()
		s := watch(t, handler, "a?offset=now&live=sse")
		if got, want := s.take(), fmt.Sprintf(tail0, cursorNow()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for range 3 {
			time.Sleep(15 * time.Second)
			if got := s.take(); got != ": heartbeat\n\n" {
				t.Errorf("after %v: got %q", time.Since(began), got)
			}
		}
		time.Sleep(14 * time.Second)
		if s.ended() {
			t.Errorf("it ended after %v", time.Since(began))
		}
		time.Sleep(time.Second)
		if got := s.take(); !s.ended() || strings.TrimPrefix(got, ": heartbeat\n\n") != "" {
			t.Errorf("after %v: ended %v with %q", time.Since(began), s.ended(), got)
		}
	})
}

// Followers receive appends and the end.
func TestFollowersSeeAppendsAndTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "", asJSON...)
		live := watch(t, handler, "a?offset=-1&live=sse")
		poll := watch(t, handler, "a?offset=now&live=long-poll")
		live.take()
		must(t, 204, handler, "POST", "a", "[1,2]", asJSON...)
		if got := live.take(); !strings.HasPrefix(got, "event: data\ndata:[1,2]\n\nid: 0000000000000002_0000000000000000_1\n") {
			t.Errorf("got %q", got)
		}
		if got := poll.take(); got != "[1,2]" || !poll.ended() {
			t.Errorf("got %q", got)
		}
		if poll.header.Get("Stream-Cursor") == "" || poll.header.Get("Etag") == "" {
			t.Errorf("got %v", poll.header)
		}
		must(t, 204, handler, "POST", "a", "3", "Content-Type", "application/json", "Stream-Closed", "true")
		got := live.take()
		if !strings.Contains(got, "data:[3]\n") || !strings.Contains(got, `"streamClosed":true`) || strings.Contains(got, "streamCursor") {
			t.Errorf("got %q", got)
		}
		if !live.ended() {
			t.Error("the connection stays open after the end")
		}
	})
}

// The time of a long-poll may be over before it has read anything. Even then its client
// learns that the stream is closed.
func TestLongPollOfAClosedStreamWithoutTime(t *testing.T) {
	handler := newHandler(func(o *durable.Options) { o.LongPoll = 1 })
	must(t, 201, handler, "PUT", "a", "x", "Content-Type", "text/plain", "Stream-Closed", "true")
	resp := must(t, 204, handler, "GET", "a?offset=0000000000000001_0000000000000000&live=long-poll", "")
	if resp.Header.Get("Stream-Closed") != "true" {
		t.Errorf("got %v", resp.Header)
	}
}

func TestLongPollTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "x", asText...)
		s := watch(t, handler, "a?offset=now&live=long-poll")
		time.Sleep(24 * time.Second)
		if s.ended() {
			t.Fatal("it did not wait")
		}
		time.Sleep(time.Second)
		if !s.ended() || s.status != 204 {
			t.Errorf("ended %v, status %d", s.ended(), s.status)
		}
		for name, want := range map[string]string{
			"Stream-Next-Offset": "0000000000000001_0000000000000000_1", "Stream-Up-To-Date": "true", "Cache-Control": "no-store",
		} {
			if got := s.header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

// Cursors grow with time, and exceed the one that a client sends.
func TestCursorsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour) // a bubble begins in 2000, cursors in 2024
		handler := newHandler(func(o *durable.Options) { o.SSEClose = 2 * time.Hour })
		must(t, 201, handler, "PUT", "a", "", asText...)
		must(t, 201, handler, "PUT", "full", "x", asText...)
		sent := cursorNow()
		h := must(t, 200, handler, "GET", fmt.Sprintf("full?offset=-1&live=long-poll&cursor=%d", sent), "").Header
		if got := h.Get("Stream-Cursor"); got <= fmt.Sprint(sent) {
			t.Errorf("got cursor %s for a client that sent %d", got, sent)
		}
		ahead := cursorNow() + 2
		s := watch(t, handler, fmt.Sprintf("a?offset=-1&live=sse&cursor=%d", ahead))
		cursor := func() (c int64) {
			text := s.take()
			_, rest, ok := strings.Cut(text, `"streamCursor":"`)
			if _, err := fmt.Sscanf(rest, "%d", &c); !ok || err != nil {
				t.Fatalf("no cursor in %q", text)
			}
			return c
		}
		first := cursor()
		if first <= ahead || first > ahead+181 {
			t.Errorf("got %d for a client that sent %d", first, ahead)
		}
		must(t, 204, handler, "POST", "a", "x", asText...)
		if again := cursor(); again != first {
			t.Errorf("got %d, then %d", first, again)
		}
		time.Sleep(time.Duration(first-cursorNow()+5) * 20 * time.Second)
		s.take()
		must(t, 204, handler, "POST", "a", "x", asText...)
		if later := cursor(); later <= first {
			t.Errorf("got %d after %d", later, first)
		}
		s.leave()
	})
}

// When a stream is deleted, its followers end. Followers of a new stream at the same path
// receive no message of the old one.
func TestFollowersAcrossDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "old", asText...)
		live := watch(t, handler, "a?offset=-1&live=sse")
		poll := watch(t, handler, "a?offset=now&live=long-poll")
		if got := decodeEvents(t, live.take(), false); got != "old" {
			t.Fatalf("got %q", got)
		}
		must(t, 204, handler, "DELETE", "a", "")
		if !live.ended() || !poll.ended() || poll.status != 404 {
			t.Errorf("live ended %v, long-poll ended %v with %d", live.ended(), poll.ended(), poll.status)
		}
		if got := live.take(); got != "" {
			t.Errorf("an event stream ended with %q", got)
		}
		must(t, 201, handler, "PUT", "a", "new", asText...)
		again := watch(t, handler, "a?offset=-1&live=sse")
		if got := decodeEvents(t, again.take(), false); got != "new" {
			t.Errorf("got %q", got)
		}
		again.leave()
	})
}

// A reader keeps a stream with a short time to live alive.
func TestFollowerKeepsStreamAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "", "Content-Type", "text/plain", "Stream-TTL", "4")
		s := watch(t, handler, "a?offset=-1&live=sse")
		time.Sleep(30 * time.Second)
		must(t, 200, handler, "HEAD", "a", "")
		s.leave()
		synctest.Wait()
		time.Sleep(5 * time.Second)
		must(t, 404, handler, "HEAD", "a", "")
	})
}

// An append is encoded once for all followers: they get the same memory.
func TestFollowersShareBytes(t *testing.T) {
	for _, path := range []string{"a", "sessions/s", "sessions/s/views/messages"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := newHandler(nil)
				post := func(body string) {
					must(t, 204, handler, "POST", "a", body, asJSON...)
					must(t, 204, handler, "POST", "sessions/s", body, asJSON...)
				}
				must(t, 201, handler, "PUT", "a", "", asJSON...)
				must(t, 201, handler, "PUT", "sessions/s", "")
				var all []*client
				for range 50 {
					s := watch(t, handler, path+"?offset=-1&live=sse")
					s.take()
					s.writes = nil
					all = append(all, s)
				}
				for i := range 3 {
					post(fmt.Sprintf(`{"type":"message.added","data":{"message":{"id":"%d"}}}`, i))
					synctest.Wait()
				}
				for _, s := range all {
					if len(s.writes) != 3 {
						t.Fatalf("got %d writes, want 3", len(s.writes))
					}
					for i, b := range s.writes {
						if b != all[0].writes[i] {
							t.Fatalf("write %d has bytes of its own", i)
						}
					}
					s.leave()
				}
			})
		})
	}
}

// A reader whose filter passes nothing is not woken. It learns at once that it has caught
// up, and receives its offset with the next heartbeat.
func TestFilteredFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "sessions/s", "")
		s := watch(t, handler, "sessions/s?offset=-1&live=sse&type=x.seen")
		if got := s.take(); !strings.Contains(got, `"upToDate":true`) || strings.Contains(got, "event: data") {
			t.Errorf("got %q", got)
		}
		must(t, 204, handler, "POST", "sessions/s", `{"type":"x.unseen"}`, asJSON...)
		if got := s.take(); got != "" {
			t.Errorf("got %q", got)
		}
		time.Sleep(15 * time.Second)
		if got := s.take(); !strings.HasPrefix(got, "id: 0000000000000002_") || !strings.Contains(got, `"upToDate":true`) {
			t.Errorf("got %q", got)
		}
		time.Sleep(15 * time.Second)
		if got := s.take(); got != ": heartbeat\n\n" {
			t.Errorf("got %q", got)
		}
		must(t, 204, handler, "POST", "sessions/s", `{"type":"x.seen"}`, asJSON...)
		if got := s.take(); !strings.Contains(got, "x.seen") {
			t.Errorf("got %q", got)
		}
		poll := watch(t, handler, "sessions/s?offset=now&live=long-poll&type=x.seen")
		must(t, 204, handler, "POST", "sessions/s", `{"type":"x.unseen"}`, asJSON...)
		if poll.ended() {
			t.Error("a long-poll was woken without a message")
		}
		time.Sleep(25 * time.Second)
		if !poll.ended() || poll.header.Get("Stream-Next-Offset") != "0000000000000004_0000000000000000_1" {
			t.Errorf("ended %v at %s", poll.ended(), poll.header.Get("Stream-Next-Offset"))
		}
		s.leave()
	})
}

// A reader whose filter passes nothing of many pages learns that it has caught up at once,
// not with the next heartbeat.
func TestFilteredFollowerLearnsThatItHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(func(o *durable.Options) { o.PageBytes = 100 })
		must(t, 201, handler, "PUT", "sessions/s", "")
		must(t, 204, handler, "POST", "sessions/s", "["+strings.Repeat(`{"type":"x"},`, 20)+`{"type":"x"}]`, asJSON...)
		s := watch(t, handler, "sessions/s?offset=-1&live=sse&type=y")
		got := s.take()
		if n := strings.Count(got, "event: control"); n != 2 || !strings.HasSuffix(got, `"upToDate":true}`+"\n\n") {
			t.Errorf("got %d events: %q", n, got)
		}
		s.leave()
	})
}

// A reader whose filter passes nothing of a long stream receives its offset now and then.
// Otherwise a reader that disconnects before the end would start again each time.
func TestFilteredFollowerReceivesItsOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "sessions/s", "")
		for range 5 {
			must(t, 204, handler, "POST", "sessions/s", "["+strings.Repeat(`{"type":"x"},`, 4999)+`{"type":"x"}]`, asJSON...)
		}
		s := watch(t, handler, "sessions/s?offset=-1&live=sse&type=y")
		if n := strings.Count(s.take(), "event: control"); n < 3 || n > 10 {
			t.Errorf("it received its offset %d times", n)
		}
		s.leave()
	})
}

// JSON that a program wrote to the store may have line ends between its values.
func TestMessageOfSeveralLines(t *testing.T) {
	store := newMemory()
	handler := durable.New(options(store))
	must(t, 201, handler, "PUT", "a", "", asJSON...)
	message := []byte("{\n \"a\": 1\r\n}")
	_, err := store.Append(t.Context(), tapedeck.Append{Session: "stream/a", Chunks: [][]byte{message, []byte("2")}, Close: true})
	if err != nil {
		t.Fatal(err)
	}
	live := textOf(t, must(t, 200, handler, "GET", "a?offset=-1&live=sse", ""))
	if got, want := decodeEvents(t, live, false), "[{\n \"a\": 1\n},2]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
