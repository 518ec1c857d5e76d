// Package jsonrpc speaks JSON-RPC 2.0 with one other side, in lines of JSON, so
// that order and pressure are kept.
//
// Whatever the other side says is heard in the order in which it said it: its
// requests, its notifications and its answers. While a handler is busy nothing
// more is read, so that an agent that says much is held back by its own pipe,
// and nothing is queued here without bounds.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
)

// ErrClosed is the error of calls to a side that is gone.
var ErrClosed = errors.New("the connection is closed")

// A Peer is the other side.
type Peer struct {
	handle func(Message)
	out    chan []byte
	closed chan struct{}
	close  sync.Once
	wg     sync.WaitGroup

	mu    sync.Mutex
	next  int64
	calls map[string]chan wire // those that wait for an answer, by id
	why   error                // it was closed for; set before closed is
}

// New begins to talk. What the other side says of its own accord goes to handle,
// one message after the other; handle must return when the peer is closed. To end
// the talk, call [Peer.Close], close r and w, and then call [Peer.Wait].
func New(r io.Reader, w io.Writer, handle func(Message)) *Peer {
	p := &Peer{handle: handle, out: make(chan []byte), closed: make(chan struct{}), calls: map[string]chan wire{}}
	p.wg.Add(2)
	go func() { defer p.wg.Done(); p.read(NewLines(r, 0)) }()
	go func() { defer p.wg.Done(); p.write(w) }()
	return p
}

// Close makes all calls fail, those that wait and those to come.
func (p *Peer) Close() { p.fail(ErrClosed) }

// Closed is closed when the other side is gone, or was closed.
func (p *Peer) Closed() <-chan struct{} { return p.closed }

// Err says why the peer is closed: io.EOF if the other side said nothing more;
// nil if it is not.
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

// answered hands an answer to who waits for it. An answer to no question is
// passed over: its call was given up.
func (p *Peer) answered(w wire) {
	p.mu.Lock()
	ch := p.calls[string(w.ID)]
	delete(p.calls, string(w.ID))
	p.mu.Unlock()
	if ch != nil {
		ch <- w // it has room for the one answer
	}
}

func (p *Peer) write(w io.Writer) {
	for {
		select {
		case b := <-p.out:
			if _, err := w.Write(b); err != nil {
				// The other side may have said why before it went, so reading goes on;
				// it ends soon, for who does not listen is not there.
				p.refuse()
				return
			}
		case <-p.closed:
			return
		}
	}
}

// refuse takes what is to be written and throws it away.
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

// Call asks the other side and waits for its answer, which is an [*Error] if it
// says that the request failed. When ctx is done the call is given up; the other
// side is not told.
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
	case w := <-ch: // it was the last word
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

// Notify tells the other side something that has no answer.
func (p *Peer) Notify(ctx context.Context, method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return p.send(ctx, wire{Method: method, Params: raw})
}

// Reply answers a request: with failed, if that is not nil, else with result.
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
