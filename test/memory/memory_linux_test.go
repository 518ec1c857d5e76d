package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// status returns a figure of /proc/PID/status in bytes.
func status(t *testing.T, pid int, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// peak returns the largest resident memory that the server has had since its start or the
// last [resetPeak].
func peak(t *testing.T, s *testserver.Server) int64 { return status(t, s.PID, "VmHWM") }

// patience keeps a test from hanging. No promise depends on it.
const patience = 5 * time.Minute

func dial(t *testing.T, s *testserver.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func post(t *testing.T, url, contentType string, body io.Reader) int {
	t.Helper()
	resp, err := http.Post(url, contentType, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func put(t *testing.T, url string) { t.Helper(); putAs(t, url, "") }

func putAs(t *testing.T, url, contentType string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

// TestPromises sends 100 requests that announce a body of 64 MiB each and send 256 KiB. The
// server must not reserve memory for bytes that were not sent.
func TestPromises(t *testing.T) {
	s := testserver.Start(t, t.TempDir())
	put(t, s.URL+"/v1/stream/x")
	before := peak(t, s)
	conns := make([]net.Conn, 100)
	for i := range conns {
		conns[i] = dial(t, s)
		fmt.Fprintf(conns[i], "POST /v1/stream/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", 64<<20)
		if _, err := conns[i].Write(make([]byte, 256<<10)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range conns {
		_ = c.(*net.TCPConn).CloseWrite()
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode < 400 {
			t.Fatal(resp, err)
		}
	}
	grown := peak(t, s) - before
	t.Logf("%d MiB", grown>>20)
	if grown > 160<<20 {
		t.Errorf("the server has grown by %d MiB for 25 MiB", grown>>20)
	}
}

// TestUploads sends 12 bodies of 60 MiB at once, over each protocol. The server stores some
// and answers the others with 503.
func TestUploads(t *testing.T) {
	const size, times = 60 << 20, 12
	event := append(append([]byte(`{"type":"test.note","data":{"pad":"`), bytes.Repeat([]byte("x"), size)...), `"}}`...)
	for name, path := range map[string]string{"rest": "/api/v1/sessions/s%d/events", "durable": "/v1/stream/sessions/s%d", "bytes": "/v1/stream/s%d"} {
		t.Run(name, func(t *testing.T) {
			s := testserver.Start(t, t.TempDir())
			var codes sync.Map
			var wg sync.WaitGroup
			for i := range times {
				contentType := "application/json"
				if put(t, s.URL+fmt.Sprintf("/v1/stream/sessions/s%d", i)); name == "bytes" {
					contentType = "application/octet-stream"
					put(t, s.URL+fmt.Sprintf(path, i))
				}
				wg.Go(func() {
					codes.Store(i, post(t, s.URL+fmt.Sprintf(path, i), contentType, bytes.NewReader(event)))
				})
			}
			wg.Wait()
			stored := 0
			codes.Range(func(i, code any) bool {
				switch code {
				case http.StatusOK, http.StatusNoContent:
					stored++
				case http.StatusServiceUnavailable:
				default:
					t.Errorf("upload %d: %d", i, code)
				}
				return true
			})
			highest := peak(t, s)
			t.Logf("%d of %d stored, %d MiB", stored, times, highest>>20)
			if stored == 0 || highest > 1<<30 {
				t.Errorf("%d were stored, with %d MiB of memory", stored, highest>>20)
			}
		})
	}
}

// anon returns the anonymous memory of the server, without the pages of its program file.
func anon(t *testing.T, s *testserver.Server) int64 { return status(t, s.PID, "RssAnon") }

// stuck opens n connections that request path and read only the first byte of the answer.
// All of them have sent the request before the first one reads.
func stuck(t *testing.T, s *testserver.Server, path string, n int) {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		}}
		c, err := d.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		conns[i] = c
	}
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// quiet waits until the server has finished its background work, such as indexing, and
// returns its memory.
func quiet(t *testing.T, s *testserver.Server) int64 {
	t.Helper()
	last, same := anon(t, s), time.Now()
	for began := time.Now(); time.Since(same) < 7*time.Second && time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) { // polls another process
		if now := anon(t, s); max(now-last, last-now) > 1<<20 {
			last, same = now, time.Now()
		}
	}
	return anon(t, s)
}

// settles waits until used has grown by at most limit bytes, and returns the growth. Only
// the time in which the server has the connections counts: it closes stuck ones later, and
// then their memory proves nothing.
func settles(t *testing.T, s *testserver.Server, used func() int64, before, limit int64, connections int) int64 {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // polls another process
		grown := used() - before
		if n := sockets(t, s); n < connections {
			t.Fatalf("%d of %d connections are left, and the server has still grown by %d KiB", n, connections, grown>>10)
		}
		if grown <= limit || time.Since(began) > patience {
			return grown
		}
	}
}

// sockets returns how many sockets the server has.
func sockets(t *testing.T, s *testserver.Server) (n int) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", s.PID)
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(folder + "/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

var collection = regexp.MustCompile(`(?m)^gc \d+ @.* \d+->\d+->(\d+) MB,`)

// live returns the memory that was in use at the server's last garbage collection, and the
// number of collections. It needs GODEBUG=gctrace=1. Unlike the memory of the process, it
// does not depend on when pages are given back to the system, which a busy machine delays.
func live(t *testing.T, s *testserver.Server) (bytes int64, collections int) {
	t.Helper()
	found := collection.FindAllStringSubmatch(s.Log(), -1)
	if len(found) == 0 {
		return 0, 0
	}
	n, err := strconv.ParseInt(found[len(found)-1][1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 20, len(found)
}

// liveAfter is live after another garbage collection than the first ones.
func liveAfter(t *testing.T, s *testserver.Server, first int) int64 {
	t.Helper()
	for {
		if n, collections := live(t, s); collections > first {
			return n
		}
		litter(t, s)
	}
}

// litter makes the server allocate memory, so that it collects garbage soon.
func litter(t *testing.T, s *testserver.Server) {
	t.Helper()
	if code := post(t, s.URL+"/api/v1/sessions/s/events", "application/json", bytes.NewReader(make([]byte, 8<<20))); code != http.StatusBadRequest {
		t.Fatal(code)
	}
}

// TestStuckReaders checks that a reader that does not read occupies no page of events in
// memory, for each kind of request.
func TestStuckReaders(t *testing.T) {
	const readers = 300
	var events strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&events, "{\"type\":\"test.note\",\"data\":{\"n\":%d,\"pad\":%q}}\n", i, strings.Repeat("x", 900))
	}
	for name, path := range map[string]string{
		"pages": "/api/v1/sessions/s/events", "stream": "/api/v1/sessions/s/stream", "filtered stream": "/api/v1/sessions/s/stream?type=test.note",
		"durable pages": "/v1/stream/sessions/s?offset=-1", "durable stream": "/v1/stream/sessions/s?offset=-1&live=sse",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, t.TempDir())
			put(t, s.URL+"/v1/stream/sessions/s")
			if code := post(t, s.URL+"/api/v1/sessions/s/events", "application/x-ndjson", strings.NewReader(events.String())); code != http.StatusOK {
				t.Fatal(code)
			}
			before := quiet(t, s)
			stuck(t, s, path, readers)
			const limit = readers * (64 << 10)
			grown := settles(t, s, func() int64 { return anon(t, s) }, before, limit, readers)
			t.Logf("%d KiB each", grown/readers>>10)
			if grown > limit {
				t.Errorf("a stuck reader costs %d KiB", grown/readers>>10)
			}
		})
	}
}

// TestStuckReadersOfALargeEvent sends many requests for a large event at once, over both
// protocols. The readers share the event while it is sent, and a stuck reader does not keep
// it in memory.
func TestStuckReadersOfALargeEvent(t *testing.T) {
	const readers, size = 100, 40 << 20
	t.Setenv("GODEBUG", "gctrace=1") // for the server
	data := t.TempDir()
	s := testserver.Start(t, data)
	put(t, s.URL+"/v1/stream/sessions/s")
	event := append(append([]byte(`{"type":"test.note","data":{"pad":"`), bytes.Repeat([]byte("x"), size)...), `"}}`...)
	if code := post(t, s.URL+"/api/v1/sessions/s/events", "application/json", bytes.NewReader(event)); code != http.StatusOK {
		t.Fatal(code)
	}
	putAs(t, s.URL+"/v1/stream/bytes", "application/octet-stream")
	if code := post(t, s.URL+"/v1/stream/bytes", "application/octet-stream", bytes.NewReader(event)); code != http.StatusNoContent {
		t.Fatal(code)
	}
	s.Stop(t)
	s = testserver.Start(t, data) // so the event is not in memory
	for name, path := range map[string]string{
		"page": "/api/v1/sessions/s/events", "stream": "/api/v1/sessions/s/stream", "filtered stream": "/api/v1/sessions/s/stream?type=test.note",
		"durable page": "/v1/stream/sessions/s?offset=-1", "durable stream": "/v1/stream/sessions/s?offset=-1&live=sse",
		"filtered durable stream": "/v1/stream/sessions/s?offset=-1&live=sse&type=test.note", "bytes": "/v1/stream/bytes?offset=-1&live=sse",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "stream" && name != "durable stream" {
				t.Skip("takes half a minute")
			}
			quiet(t, s)
			before, _ := live(t, s)
			resetPeak(t, s)
			stuck(t, s, path, readers)
			grown := settles(t, s, func() int64 {
				_, past := live(t, s)
				return liveAfter(t, s, past+1) // the first one may have begun earlier
			}, before, readers<<20, readers)
			highest := peak(t, s)
			t.Logf("%d KiB each, %d MiB at most", grown/readers>>10, highest>>20)
			if grown > readers<<20 || highest > 1<<30 {
				t.Errorf("a stuck reader costs %d KiB; the server had %d MiB", grown/readers>>10, highest>>20)
			}
		})
	}
}

// resetPeak sets [peak] to the present memory.
func resetPeak(t *testing.T, s *testserver.Server) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// TestIdleConnections checks that an idle connection and a follower of a quiet session need
// at most 64 KiB of memory each.
func TestIdleConnections(t *testing.T) {
	const connections = 1000
	for name, path := range map[string]string{"between requests": "/healthz", "followers": "/v1/stream/sessions/s?offset=-1&live=sse", "events": "/api/v1/sessions/s/stream"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, t.TempDir())
			put(t, s.URL+"/v1/stream/sessions/s")
			before := quiet(t, s)
			for range connections {
				c := dial(t, s)
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
				if _, err := bufio.NewReader(c).ReadByte(); err != nil {
					t.Fatal(err)
				}
			}
			grown := settles(t, s, func() int64 { return anon(t, s) }, before, connections*(64<<10), connections)
			t.Logf("%d KiB each", grown/connections>>10)
			if grown > connections*(64<<10) {
				t.Errorf("a connection costs %d KiB", grown/connections>>10)
			}
		})
	}
}
