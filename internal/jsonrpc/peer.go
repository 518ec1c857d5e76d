// Package jsonrpc speaks JSON-RPC 2.0 with one peer, in lines of JSON. It keeps the
// order of messages and applies back pressure.
//
// Requests, notifications and answers of the peer are handled in the order in which it
// sent them. While a handler is busy, no further line is read. So an agent that sends
// too much is held back by its own pipe, and no queue grows here without bounds.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
)

// ErrClosed is the error of calls after the connection was closed.
var ErrClosed = errors.New("the connection is closed")

// A Peer is the other side of a connection.
type Peer struct {
	handle func(Message)
	out    chan []byte
	closed chan struct{}
	close  sync.Once
	wg     sync.WaitGroup

	mu    sync.Mutex
	next  int64
	calls map[string]chan wire // calls that wait for an answer, by id
	why   error                // the reason of the close; set before closed is closed
}

// New starts a connection. handle gets the peer's requests and notifications, one after
// the other; it must return when the peer is closed. To end the connection, call
// [Peer.Close], close r and w, and then call [Peer.Wait].
func New(r io.Reader, w io.Writer, handle func(Message)) *Peer {
	p := &Peer{handle: handle, out: make(chan []byte), closed: make(chan struct{}), calls: map[string]chan wire{}}
	p.wg.Add(2)
	go func() { defer p.wg.Done(); p.read(NewLines(r, 0)) }()
	go func() { defer p.wg.Done(); p.write(w) }()
	return p
}

// Close makes all calls fail: those that wait and all later ones. It does not close the
// reader and the writer of [New].
func (p *Peer) Close() { p.fail(ErrClosed) }

// Closed returns a channel that is closed when the peer has closed the connection, when
// reading has failed, or after [Peer.Close].
func (p *Peer) Closed() <-chan struct{} { return p.closed }

// Err returns why the connection is closed: io.EOF if the peer closed it, [ErrClosed]
// after [Peer.Close], otherwise the error of the reader. It returns nil while the
// connection is open.
func (p *Peer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// Wait waits for the goroutines of the peer.
func (p *Peer) Wait() { p.wg.Wait() }

func (p *Peer) fail(why error) {
	p.close.Do(func() {
		p.mu.Lock()
		p.why = why
		p.mu.Unlock()
		close(p.closed)
	})
}

func (p *Peer) read(lines *Lines) {
	for {
		line, err := lines.Next()
		if err != nil {
			p.fail(err)
			return
		}
		w, ok := parse(line)
		switch {
		case !ok:
			p.handle(Message{Params: append(json.RawMessage(nil), line...)})
		case w.Method != "":
			p.handle(Message{ID: w.ID, Method: w.Method, Params: w.Params})
		default:
			p.answered(w)
		}
		select {
		case <-p.closed:
			return
		default:
		}
	}
}

// answered hands an answer to the call that waits for it. It drops an answer without a
// call, because that call was given up.
func (p *Peer) answered(w wire) {
	p.mu.Lock()
	ch := p.calls[string(w.ID)]
	delete(p.calls, string(w.ID))
	p.mu.Unlock()
	if ch != nil {
		ch <- w // never blocks: the channel is buffered
	}
}

func (p *Peer) write(w io.Writer) {
	for {
		select {
		case b := <-p.out:
			if _, err := w.Write(b); err != nil {
				// Reading continues: the peer may have sent the reason before it
				// closed its input. Reading ends soon.
				p.refuse()
				return
			}
		case <-p.closed:
			return
		}
	}
}

// refuse discards all messages until the connection is closed.
func (p *Peer) refuse() {
	for {
		select {
		case <-p.out:
		case <-p.closed:
			return
		}
	}
}

// send hands a message to the writer.
func (p *Peer) send(ctx context.Context, w wire) error {
	w.Version = "2.0"
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	select {
	case p.out <- append(b, '\n'):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return p.gone()
	}
}

func (p *Peer) gone() error {
	if err := p.Err(); !errors.Is(err, io.EOF) {
		return err
	}
	return ErrClosed
}

// Call sends a request and waits for the answer. If the peer answers with an error,
// Call returns it as an [*Error]. When ctx is done, Call returns; the peer is not
// notified.
func (p *Peer) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	id, ch := p.expect()
	defer p.forget(id)
	if err := p.send(ctx, wire{ID: json.RawMessage(id), Method: method, Params: raw}); err != nil {
		return nil, err
	}
	select {
	case w := <-ch:
		return w.outcome()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
	}
	select {
	case w := <-ch: // the answer arrived just before the close
		return w.outcome()
	default:
		return nil, p.gone()
	}
}

func (w *wire) outcome() (json.RawMessage, error) {
	if w.Error != nil {
		return nil, w.Error
	}
	return w.Result, nil
}

func (p *Peer) expect() (string, chan wire) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	id, ch := strconv.FormatInt(p.next, 10), make(chan wire, 1)
	p.calls[id] = ch
	return id, ch
}

func (p *Peer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

// Notify sends a notification, which has no answer.
func (p *Peer) Notify(ctx context.Context, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return p.send(ctx, wire{Method: method, Params: raw})
}

// Reply answers a request: with failed if it is not nil, otherwise with result.
func (p *Peer) Reply(ctx context.Context, id json.RawMessage, result any, failed *Error) error {
	if failed != nil {
		return p.send(ctx, wire{ID: id, Error: failed})
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return p.send(ctx, wire{ID: id, Result: raw})
}
