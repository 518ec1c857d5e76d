// Package sse writes and reads Server-Sent Events: the response headers that keep
// proxies from buffering, frames, comments and flushing. A frame is bytes, so that one
// encoding can be sent to every reader of the same event.
package sse

import (
	"bytes"
	"net/http"
	"time"
)

// Heartbeat is how long a stream may be silent before it sends a comment, so that
// proxies and clients see that it lives.
const Heartbeat = 15 * time.Second

// writeTimeout is how long one write may take. A client that reads nothing for this long
// has disconnected or is stuck; it can resume from its cursor.
const writeTimeout = 60 * time.Second

// A Writer writes an event stream.
type Writer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// Start sends the headers of an event stream. The caller sets further headers on w
// before.
func Start(w http.ResponseWriter) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx
	w.WriteHeader(http.StatusOK)
	s := &Writer{w: w, rc: http.NewResponseController(w)}
	return s, s.rc.Flush()
}

// Send sends whole frames and flushes.
func (s *Writer) Send(frames []byte) error {
	if _, err := s.Write(frames); err != nil {
		return err
	}
	return s.Flush()
}

// Write sends a part of frames. Call Flush after the last part.
func (s *Writer) Write(b []byte) (int, error) {
	// Not every ResponseWriter has deadlines; one in memory needs none.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return s.w.Write(b)
}

// Flush sends the parts that were written.
func (s *Writer) Flush() error { return s.rc.Flush() }

// Heartbeat sends a comment.
func (s *Writer) Heartbeat() error { return s.Send([]byte(": heartbeat\n\n")) }

// AppendFrame appends a frame to dst. An empty id and an empty event are left out. Data
// gets one data line for each of its lines, which end with CRLF, CR or LF.
func AppendFrame(dst []byte, id, event string, data []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	if event != "" {
		dst = append(append(append(dst, "event: "...), event...), '\n')
	}
	for {
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			break
		}
		dst = append(append(append(dst, "data: "...), data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
