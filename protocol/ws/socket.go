package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
	"github.com/tapedeck/tapedeck/internal/hangup"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/problem"
)

const (
	// maxMessage is the largest message of a client, in bytes.
	maxMessage = 8 << 20

	// scratch is how much memory a socket keeps for the messages that it reads.
	scratch = 64 << 10
)

// A socket is one WebSocket.
type socket struct {
	*handler
	conn    *websocket.Conn
	request *http.Request   // for the log; its context does not end
	stopped context.Context // done when the server stops, and with the cause when the token is no longer valid
	session string          // of frames that name none; "" for none

	ctx    context.Context // done when nothing more is read from the socket
	cancel context.CancelFunc

	report func(error) error // sends an error in the form of the protocol
	ending sync.Once

	share *intake.Share
	late  *time.Timer // closes the connection if a message does not arrive in time
	in    []byte      // memory for reading

	lock  chan struct{} // has an element while a message is written
	stuck *time.Timer   // closes the connection if the client reads nothing
	wrote time.Time     // the end of the last write; guarded by lock
}

func newSocket(h *handler, c *websocket.Conn, r *http.Request, session string) *socket {
	s := &socket{
		handler: h, conn: c, request: r.WithContext(context.WithoutCancel(r.Context())), stopped: r.Context(), session: session,
		share: intake.ShareOf(r), wrote: time.Now(), lock: make(chan struct{}, 1),
	}
	s.report = func(err error) error { return s.send(frame.AppendError(nil, -1, "", s.shown(err), err)) }
	s.ctx, s.cancel = context.WithCancel(r.Context())
	c.SetReadLimit(-1) // read does this, with an error for the client
	abort := func() { _ = c.CloseNow() }
	s.late, s.stuck = time.AfterFunc(time.Hour, abort), time.AfterFunc(time.Hour, abort)
	s.late.Stop()
	s.stuck.Stop()
	return s
}

// A fault is an error after which a socket cannot continue. It ends with a frame of the
// protocol and with the code.
type fault struct {
	err  error
	code websocket.StatusCode
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// faultOf returns the fault of an error. A token that is no longer valid has the code of its
// own whatever notices it first.
func faultOf(err error, code websocket.StatusCode) *fault {
	if tapedeck.KindOf(err) == tapedeck.Unauthorized {
		code = websocket.StatusPolicyViolation
	}
	return &fault{err, code}
}

// stopping is the fault of a server that stops.
var stopping = &fault{
	tapedeck.Errorf(tapedeck.Unavailable, "the server stops").WithHint("connect again and continue from your cursor"),
	websocket.StatusGoingAway,
}

// watch ends the socket when the server stops, or the token of its client is no longer
// valid, until the result is called.
func (s *socket) watch() (stop func() bool) {
	return context.AfterFunc(s.stopped, func() {
		if cause := context.Cause(s.stopped); tapedeck.KindOf(cause) == tapedeck.Unauthorized {
			s.end(faultOf(cause, websocket.StatusPolicyViolation))
			return
		}
		s.end(stopping)
	})
}

// end ends the socket. The first call decides how: with an error, or, if err is no fault,
// because the client has closed the socket or the connection broke.
func (s *socket) end(err error) {
	s.ending.Do(func() {
		defer s.cancel()
		f := (*fault)(nil)
		if !errors.As(err, &f) {
			_ = s.conn.Close(websocket.StatusNormalClosure, "") // without effect if the client has closed it
			return
		}
		if s.report(f.err) == nil {
			_ = s.conn.Close(f.code, f.err.Error()[:min(len(f.err.Error()), maxReason)])
		}
		_ = s.conn.CloseNow()
	})
	s.late.Stop()
	s.stuck.Stop()
}

// maxReason is the longest reason in a close frame, in bytes.
const maxReason = 100

// read returns the next message, and counts its bytes against the memory budget until
// release. The message may be kept.
func (s *socket) read() ([]byte, error) {
	typ, r, err := s.conn.Reader(context.Background()) // the end of a context would break the connection without a close frame
	if err != nil {
		return nil, err
	}
	if typ != websocket.MessageText {
		return nil, &fault{tapedeck.Errorf(tapedeck.Unsupported, "a binary message is not understood").WithHint("send text"), websocket.StatusUnsupportedData}
	}
	s.late.Reset(intake.Grace)
	defer s.late.Stop()
	b, counted := s.in[:0], int64(0)
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, max(4<<10, len(b)))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if len(b)/scratch > (len(b)-n)/scratch {
			s.late.Reset(intake.Grace)
		}
		if full := s.share.Take(int64(n)); full != nil {
			s.share.Give(counted)
			return nil, &fault{full, websocket.StatusTryAgainLater}
		}
		counted += int64(n)
		switch {
		case len(b) > maxMessage:
			s.share.Give(counted)
			return nil, &fault{tooLarge(), websocket.StatusMessageTooBig}
		case errors.Is(err, io.EOF):
			if cap(b) <= scratch {
				s.in, b = b, slices.Clone(b)
			}
			return b, nil
		case err != nil:
			s.share.Give(counted)
			return nil, err
		}
	}
}

func tooLarge() error {
	return tapedeck.Errorf(tapedeck.TooLarge, "a message has more than %d MiB", maxMessage>>20).
		WithHint("send it in parts, or append a large event with POST /api/v1/sessions/{id}/events")
}

// release ends the count of a message.
func (s *socket) release(size int) { s.share.Give(int64(size)) }

// send sends a message. If the client reads nothing for a minute, the socket is closed.
func (s *socket) send(message []byte) error {
	s.lock <- struct{}{}
	defer s.unlock()
	s.stuck.Reset(hangup.WriteTimeout)
	if err := s.conn.Write(context.Background(), websocket.MessageText, message); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// errBroken says that the client cannot be reached any more, which is no fault of the server.
var errBroken = errors.New("the connection broke")

// unlock ends a write.
func (s *socket) unlock() {
	s.stuck.Stop()
	s.wrote = time.Now()
	<-s.lock
}

// shown returns the part of an error that the client may see.
func (s *socket) shown(err error) *tapedeck.Error { return problem.Shown(s.request, err, s.Logger) }

// beat calls send whenever the socket was silent for the time of a heartbeat, until the
// context ends.
func (s *socket) beat(ctx context.Context, send func() error) {
	ticker := time.NewTicker(s.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case s.lock <- struct{}{}:
		default: // a message is being written
			continue
		}
		silent := time.Since(s.wrote) >= s.Heartbeat/2
		<-s.lock
		if silent && send() != nil {
			return
		}
	}
}
