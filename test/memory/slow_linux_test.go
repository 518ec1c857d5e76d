package memory

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

var followers = flag.Int("followers", 500, "number of followers in TestSlowFollowers")

const (
	beforeStall = 50  // events that are there when the followers connect
	inStall     = 400 // events that are appended while nobody reads
	readAtOnce  = 100 // followers that read again at the same time
)

// TestSlowFollowers: many followers of one session stop reading. The writer's appends are
// answered all the same, and the server's memory stays small. Then each follower reads on: it
// gets every event once, over the same connection, or over another one if the server has
// dropped it meanwhile.
func TestSlowFollowers(t *testing.T) {
	s := testserver.Start(t, t.TempDir())
	put(t, s.URL+"/v1/stream/sessions/s")
	write := func(n int) {
		t.Helper()
		for range n {
			event := `{"type":"test.note","data":{"pad":"` + strings.Repeat("x", 2000) + `"}}`
			if code := post(t, s.URL+"/api/v1/sessions/s/events", "application/json", strings.NewReader(event)); code != http.StatusOK {
				t.Fatalf("an append is answered with %d", code)
			}
		}
	}
	write(beforeStall)
	before := quiet(t, s)
	all := make([]*slow, *followers)
	for i := range all {
		all[i] = &slow{client: slowClient(), url: s.URL + "/api/v1/sessions/s/stream", next: 0}
		if err := all[i].connect(t); err != nil {
			t.Fatalf("follower %d: %v", i, err)
		}
	}
	write(inStall) // with no reader: a writer that waited for one would stay here until the test ends
	limit := int64(*followers) * (64 << 10)
	grown := settles(t, s, func() int64 { return anon(t, s) }, before, limit, *followers)
	t.Logf("%d followers: %d KiB each", *followers, grown/int64(*followers)>>10)
	if grown > limit {
		t.Errorf("a follower that does not read costs %d KiB", grown/int64(*followers)>>10)
	}
	var dropped atomic.Int64
	var done sync.WaitGroup
	turns := make(chan struct{}, readAtOnce)
	for i, f := range all {
		done.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if err := f.readOn(t, beforeStall+inStall); err != nil {
				t.Errorf("follower %d: %v", i, err)
			}
			dropped.Add(f.dropped)
		})
	}
	done.Wait()
	t.Logf("%d connections were dropped and made again", dropped.Load())
}

// A slow is a follower. It checks that it gets each event once, in order.
type slow struct {
	client  *http.Client
	url     string
	lines   *bufio.Scanner
	close   func() error
	next    int64
	last    string // the id of the newest event
	dropped int64
}

// slowClient returns a client that takes little from the system's buffers. Each has its own
// transport: its only connection is the one that it does not read.
func slowClient() *http.Client {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	return &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableCompression: true}}
}

func (f *slow) connect(t *testing.T) error {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url, nil)
	if err != nil {
		return err
	}
	if f.last != "" {
		r.Header.Set("Last-Event-ID", f.last)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("the stream is answered with %d", resp.StatusCode)
	}
	f.lines, f.close = bufio.NewScanner(resp.Body), resp.Body.Close
	f.lines.Buffer(make([]byte, 4096), 1<<16)
	return nil
}

// readOn reads until it has n events, and connects again if its connection ends before.
func (f *slow) readOn(t *testing.T, n int64) error {
	for stop := time.Now().Add(patience); f.next < n; {
		for f.next < n && f.lines.Scan() {
			id, ok := strings.CutPrefix(f.lines.Text(), "id: ")
			if !ok {
				continue
			}
			number, _, _ := strings.Cut(id, "@")
			if offset, err := strconv.ParseInt(number, 10, 64); err != nil || offset != f.next {
				return fmt.Errorf("event %s follows event %d", id, f.next-1)
			}
			f.next, f.last = f.next+1, id
		}
		_ = f.close()
		if f.next >= n {
			return nil
		}
		if time.Now().After(stop) {
			return fmt.Errorf("it has %d of %d events", f.next, n)
		}
		f.dropped++
		if err := f.connect(t); err != nil {
			return err
		}
	}
	return nil
}
