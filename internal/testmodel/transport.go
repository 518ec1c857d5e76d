package testmodel

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport returns a transport that calls h in this process, without a network. It
// waits only for timers and channels, so it works in a bubble of testing/synctest. A
// handler that panics with [http.ErrAbortHandler] breaks the connection.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	body, sink := io.Pipe()
	w := &writer{header: http.Header{}, sink: sink, begun: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.serve(t.handler, r.WithContext(ctx))
	}()
	select {
	case <-w.begun:
	case <-done:
		w.WriteHeader(http.StatusOK)
	case <-r.Context().Done():
		stop()
		_ = body.Close()
		<-done
		return nil, r.Context().Err()
	}
	context.AfterFunc(ctx, func() { _ = body.CloseWithError(ctx.Err()) })
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &closer{body, stop, done}, Request: r, ContentLength: -1,
	}, nil
}

// A closer is a response body. Close cancels the request's context and waits until the
// handler returns.
type closer struct {
	io.ReadCloser
	stop context.CancelFunc
	done <-chan struct{}
}

func (c *closer) Close() error {
	err := c.ReadCloser.Close()
	c.stop()
	<-c.done
	return err
}

// A writer is the [http.ResponseWriter] of a handler whose client reads sink.
type writer struct {
	header http.Header
	sink   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header
}

func (w *writer) serve(h http.Handler, r *http.Request) {
	defer func() {
		switch p := recover(); p {
		case nil:
			_ = w.sink.Close()
		case http.ErrAbortHandler:
			_ = w.sink.CloseWithError(io.ErrUnexpectedEOF)
		default:
			panic(p)
		}
	}()
	if r.Body != nil {
		defer r.Body.Close()
	}
	h.ServeHTTP(w, r)
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.sink.Write(p)
}

// Flush implements [http.Flusher]. Only the header can still be unsent.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }
