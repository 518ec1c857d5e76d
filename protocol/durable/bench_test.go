package durable_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

// dial connects to the server of a benchmark. The client writes bytes to TCP, because a
// client of net/http would cost more than the measured work.
func dial(b testing.TB, s *httptest.Server) (net.Conn, *bufio.Reader) {
	b.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

func request(method, path string, header string, body []byte) []byte {
	return fmt.Appendf(nil, "%s /v1/stream/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", method, path, header, len(body), body)
}

// exchange sends a request and reads an answer that has no body.
func exchange(b testing.TB, c net.Conn, r *bufio.Reader, request []byte, status string) {
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	line, err := r.ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(line, []byte("HTTP/1.1 "+status)) {
		b.Fatalf("got %q, %v, want status %s", line, err, status)
	}
	for len(line) > 2 {
		if line, err = r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func benchServer(b *testing.B) *httptest.Server {
	s := httptest.NewServer(durable.New(options(memory.New(memory.Options{}))))
	b.Cleanup(s.Close)
	return s
}

const jsonHeader = "Content-Type: application/json\r\n"

// BenchmarkAppend appends 256 bytes many times on each of a few connections.
func BenchmarkAppend(b *testing.B) {
	s := benchServer(b)
	var streams atomic.Int64
	body := []byte(strings.Repeat("x", 256))
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, r := dial(b, s)
		path := fmt.Sprint("append-", streams.Add(1))
		header := "Content-Type: application/octet-stream\r\n"
		exchange(b, c, r, request("PUT", path, header, nil), "201")
		post := request("POST", path, header, body)
		for pb.Next() {
			exchange(b, c, r, post, "204")
		}
	})
}

// BenchmarkFanOut appends one message and waits until all followers have it.
func BenchmarkFanOut(b *testing.B) {
	const followers = 1000
	s := benchServer(b)
	c, r := dial(b, s)
	exchange(b, c, r, request("PUT", "fan", jsonHeader, nil), "201")
	got := make(chan struct{}, followers)
	for range followers {
		f, fr := dial(b, s)
		if _, err := f.Write(request("GET", "fan?offset=-1&live=sse", "", nil)); err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				line, err := fr.ReadSlice('\n')
				if err != nil {
					return
				}
				if bytes.HasPrefix(line, []byte("id: ")) {
					got <- struct{}{}
				}
			}
		}()
	}
	all := func() {
		for range followers {
			<-got
		}
	}
	all()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	post := request("POST", "fan", jsonHeader, []byte(`{"t":1,"p":"`+strings.Repeat("x", 150)+`"}`))
	b.ResetTimer()
	b.ReportAllocs()
	for range b.N {
		exchange(b, c, r, post, "204")
		all()
	}
	// About 8 of these are of the client.
	b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/followers/1024, "idle-KB/follower")
}

// BenchmarkCatchUp reads 10,000 messages from the start.
func BenchmarkCatchUp(b *testing.B) {
	s := benchServer(b)
	c, r := dial(b, s)
	exchange(b, c, r, request("PUT", "catchup", jsonHeader, nil), "201")
	message := `{"i":1,"p":"` + strings.Repeat("x", 150) + `"}`
	array := []byte("[" + message + strings.Repeat(","+message, 9999) + "]")
	exchange(b, c, r, request("POST", "catchup", jsonHeader, array), "204")
	b.SetBytes(int64(len(array)))
	b.ReportAllocs()
	for b.Loop() {
		offset := "-1"
		for done := false; !done; {
			resp, err := http.Get(s.URL + "/v1/stream/catchup?offset=" + offset)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			offset, done = resp.Header.Get("Stream-Next-Offset"), resp.Header.Get("Stream-Up-To-Date") != ""
		}
	}
}
