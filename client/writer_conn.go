package client

import (
	"context"
	"net/http"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
)

// subprotocol is the WebSocket protocol of a [Writer].
const subprotocol = "tapedeck.v1"

// A connection of a writer.
type connection struct {
	*Writer
	socket *websocket.Conn

	// Guarded by the lock of the writer:
	frames   int64 // number of the next frame
	floor    int64 // the answers to frames below this number are ignored
	answered bool
}

// connect writes over one connection until it breaks. It reports whether an append was
// answered.
func (w *Writer) connect(ctx context.Context) (answered bool, err error) {
	socket, err := w.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = socket.CloseNow() }()
	c := &connection{Writer: w, socket: socket}
	w.mu.Lock()
	w.sent = 0
	w.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(ctx)
		_ = socket.CloseNow() // ends receive
	}()
	err = c.receive(ctx)
	stop()
	<-sent
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.answered, err
}

func (w *Writer) dial(ctx context.Context) (*websocket.Conn, error) {
	header := http.Header{}
	if err := w.client.addHeaders(ctx, header); err != nil {
		return nil, err
	}
	socket, resp, err := websocket.Dial(ctx, w.client.base+sessionPath(w.session, "ws"), &websocket.DialOptions{
		HTTPClient: w.client.http, HTTPHeader: header, Subprotocols: []string{subprotocol},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && resp != nil && resp.StatusCode >= http.StatusBadRequest:
		return nil, readError(resp)
	case err != nil && resp != nil:
		return nil, tapedeck.Errorf(tapedeck.Unsupported, "the server at %s does not open a WebSocket", w.client.address()).
			WithHint("is a Tapedeck server at this address?").Because(err)
	case err != nil:
		return nil, w.client.failed(err)
	case socket.Subprotocol() != subprotocol:
		_ = socket.CloseNow()
		return nil, tapedeck.Errorf(tapedeck.Unsupported, "the server at %s does not speak %s", w.client.address(), subprotocol)
	}
	socket.SetReadLimit(-1)
	return socket, nil
}

// maxMessage is about how many bytes of appends are sent as one message.
const maxMessage = 48 << 10

// send sends the appends of the queue as they come, until the connection breaks.
func (c *connection) send(ctx context.Context) {
	var message []byte
	for {
		message = message[:0]
		c.mu.Lock()
		for c.sent < len(c.queue) && len(message) < maxMessage {
			x := c.queue[c.sent]
			x.frame = c.frames
			p := c.producer
			p.Seq = x.seq - c.base
			message = frame.AppendRequest(message, x.frame, c.session, &p, x.events)
			c.frames, c.sent = c.frames+1, c.sent+1
		}
		change := c.change
		c.mu.Unlock()
		if len(message) > 0 {
			if c.socket.Write(ctx, websocket.MessageText, message) != nil {
				return // receive has the error
			}
			continue
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
	}
}

// receive reads the answers.
func (c *connection) receive(ctx context.Context) error {
	for {
		_, message, err := c.socket.Read(ctx)
		if err != nil {
			return unreachable(err)
		}
		if err := c.take(message); err != nil {
			return err
		}
	}
}

// take handles the answers of a message.
func (c *connection) take(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wake()
	for line := range frame.Lines(message) {
		a, err := frame.ParseAnswer(line)
		if err != nil {
			return err
		}
		switch {
		case a.Type == frame.TypeError && a.Seq < 0:
			return a.Err
		case a.Type != frame.TypeAck && a.Type != frame.TypeError, a.Seq < c.floor:
			continue
		case c.sent == 0 || a.Seq != c.queue[0].frame:
			return tapedeck.Errorf(tapedeck.Internal, "the server has answered append %d out of order", a.Seq)
		}
		c.answered = true
		if err := c.answer(a); err != nil {
			return err
		}
	}
	return nil
}

// answer handles the answer to the first append of the queue.
func (c *connection) answer(a frame.Answer) error {
	if a.Err == nil {
		c.finishFirst(a.Done, nil)
		return nil
	}
	if passing(a.Err) || isFinal(a.Err) || tapedeck.RefusalOf(a.Err) == tapedeck.RefusedClosed {
		return a.Err
	}
	// The log has not accepted this sequence number. So it refuses, as a gap, what was sent
	// after it, and these answers are ignored. Everything after it is sent again in a new
	// epoch. The epoch also fences off what an earlier connection may still deliver.
	c.finishFirst(tapedeck.Appended{First: -1, Next: -1}, a.Err)
	c.producer.Epoch++
	c.base = c.next
	if len(c.queue) > 0 {
		c.base = c.queue[0].seq
	}
	c.floor, c.sent = c.frames, 0
	return nil
}

// isFinal reports whether every later append to the session would fail, too.
func isFinal(err error) bool {
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound, tapedeck.Gone, tapedeck.Forbidden, tapedeck.Unauthorized:
		return true
	}
	return false
}
