package sse

import (
	"errors"
	"net/http"
	"time"
)

// ErrDisconnected is the error of a client that has closed its connection, or that
// has read nothing for a minute.
var ErrDisconnected = errors.New("the client has disconnected")

// A Stream is an event stream that starts with its first write: until then the
// handler can still answer with an error. It sends comments while it is silent.
type Stream struct {
	w      http.ResponseWriter
	quiet  time.Duration
	writer *Writer // nil before the first write
	wrote  time.Time
}

// NewStream returns a stream to w. It sends a comment after it was silent for quiet.
func NewStream(w http.ResponseWriter, quiet time.Duration) *Stream {
	return &Stream{w: w, quiet: quiet}
}

// Started reports whether the stream has started.
func (s *Stream) Started() bool { return s.writer != nil }

// Send starts the stream and sends frames. Without frames it sends a comment if one
// is due. Call it at least every quiet.
func (s *Stream) Send(frames []byte) error {
	started := s.Started()
	if err := s.start(); err != nil {
		return err
	}
	now := time.Now()
	var err error
	switch {
	case len(frames) > 0 || !started:
		err = s.writer.Send(frames)
	case now.Sub(s.wrote) >= s.quiet:
		err = s.writer.Heartbeat()
	default:
		return nil
	}
	s.wrote = now
	return orDisconnected(err)
}

func (s *Stream) start() error {
	if s.Started() {
		return nil
	}
	var err error
	s.writer, err = Start(s.w)
	return orDisconnected(err)
}

// Write sends a part of a frame. Call [Stream.Flush] after the last part. The stream
// must have started.
func (s *Stream) Write(b []byte) (int, error) { return s.writer.Write(b) }

// Flush sends the parts that were written.
func (s *Stream) Flush() error {
	s.wrote = time.Now()
	return orDisconnected(s.writer.Flush())
}

// Close removes the deadline of the last write: the next answer on the connection
// may be written later than that.
func (s *Stream) Close() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Time{}) // not every ResponseWriter has deadlines
}

func orDisconnected(err error) error {
	if err != nil {
		return ErrDisconnected
	}
	return nil
}
