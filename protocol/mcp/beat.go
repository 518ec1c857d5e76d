package mcp

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck/internal/sse"
)

// A beating is a response that sends comments while it is a silent event stream, which the
// SDK does not do: so proxies do not close it, and the server notices clients that have
// disconnected.
type beating struct {
	http.ResponseWriter
	rc *http.ResponseController

	mu    sync.Mutex
	beat  *time.Timer // nil until the response is an event stream
	begun bool        // a part of the answer was written
	ended bool
}

func newBeating(w http.ResponseWriter) *beating {
	return &beating{ResponseWriter: w, rc: http.NewResponseController(w)}
}

// WriteHeader implements [http.ResponseWriter].
func (b *beating) WriteHeader(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.isStream() {
		b.Header().Set("X-Accel-Buffering", "no") // nginx
	}
	b.begun = true
	b.ResponseWriter.WriteHeader(status)
}

func (b *beating) isStream() bool {
	return strings.HasPrefix(b.Header().Get("Content-Type"), "text/event-stream")
}

// Write implements [http.ResponseWriter]. The SDK writes whole frames.
func (b *beating) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, http.ErrHandlerTimeout
	}
	b.begun = true
	switch {
	case b.beat != nil:
		b.beat.Reset(sse.Heartbeat)
	case b.isStream():
		b.Header().Set("X-Accel-Buffering", "no") // as in WriteHeader, which was maybe not called
		b.beat = time.AfterFunc(sse.Heartbeat, b.comment)
	}
	return b.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (b *beating) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.begun = true
	return b.rc.Flush()
}

// comment sends a comment. If the client has disconnected, the request ends by its context.
func (b *beating) comment() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	_, _ = b.ResponseWriter.Write([]byte(": heartbeat\n\n"))
	_ = b.rc.Flush()
	b.beat.Reset(sse.Heartbeat)
}

// stop ends the use of the response: nobody may write to it after the handler has returned.
// It reports whether the answer has begun.
func (b *beating) stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended = true; b.beat != nil {
		b.beat.Stop()
	}
	return b.begun
}
