package server_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/server"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A recycled response is used again, so that it costs no allocation.
type recycled struct {
	header http.Header
	status int
}

func (r *recycled) Header() http.Header         { return r.header }
func (r *recycled) Write(b []byte) (int, error) { return len(b), nil }
func (r *recycled) WriteHeader(status int)      { r.status = status }

// BenchmarkAppend measures an append of 256 bytes without net/http and the database.
func BenchmarkAppend(b *testing.B) {
	h := hub.New(memory.New(memory.Options{}))
	s := server.New(server.Options{REST: http.NotFoundHandler(), Durable: durable.New(durable.Options{Store: h})})
	w := &recycled{header: http.Header{}}
	send := func(r *http.Request, status int) {
		clear(w.header)
		if s.ServeHTTP(w, r); w.status != status {
			b.Fatalf("status %d, want %d", w.status, status)
		}
	}
	newRequest := func(method string) *http.Request {
		r := httptest.NewRequest(method, "/v1/stream/bench-1732190000000000000-1", nil)
		r.Host = "127.0.0.1:4747"
		r.Header.Set("Content-Type", "application/octet-stream")
		return r
	}
	send(newRequest(http.MethodPut), http.StatusCreated)
	message, r := make([]byte, 256), newRequest(http.MethodPost)
	body := bytes.NewReader(message)
	r.Header.Set("Content-Length", "256")
	r.Body, r.ContentLength = io.NopCloser(body), 256
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(message)
		send(r, http.StatusNoContent)
	}
}
