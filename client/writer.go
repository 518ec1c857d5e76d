package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// WriterOptions configure a [Writer]. The zero value is ready for use.
type WriterOptions struct {
	// OnDone is called for each append when it is answered, in the order of the numbers:
	// with its offsets, or with the reason why it was not stored. Offsets are -1 if the
	// append was stored, but its answer was lost with a connection. It must be quick and
	// must not call the writer. Nil for none.
	OnDone func(seq int64, done tapedeck.Appended, err error)

	// OnReconnect is called before each wait for the next connection; attempt counts from
	// 1 since the last answer. Nil for none.
	OnReconnect func(attempt int, err error)

	// MaxPending is how many bytes of events may wait for their answers, before Append
	// waits; 0 for 4 MiB.
	MaxPending int
}

// A Writer appends to one session over one WebSocket, without waiting for the answer to
// one append before it sends the next. It reconnects as [Client.Follow] does and sends
// again what has no answer; each append is stored once, because the writer is a producer
// with an id of its own. Its methods may be called by several goroutines.
type Writer struct {
	client  *Client
	session string
	options WriterOptions
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	change chan struct{} // closed and replaced at each change that somebody waits for
	queue  []*write      // the appends without an answer
	sent   int           // how many of them were sent on the connection
	bytes  int           // of their events
	next   int64         // the number of the next append
	fatal  error         // why the writer can store nothing more; nil while it can
	closed bool

	producer tapedeck.Producer // Seq is not used
	base     int64             // the number of the append that has sequence number 0 in the epoch

	failed []error // of appends, since the last Flush
	more   int     // further ones
}

// A write is an append that waits for its answer.
type write struct {
	seq    int64
	events []byte // a JSON array
	frame  int64  // its number on the connection, if it was sent
}

// A WriteError says which append of a [Writer] was not stored, and why.
type WriteError struct {
	Seq int64 // the number that [Writer.Append] returned
	Err error
}

// Error implements error.
func (e *WriteError) Error() string { return fmt.Sprintf("append %d was not stored: %v", e.Seq, e.Err) }

// Unwrap returns the reason.
func (e *WriteError) Unwrap() error { return e.Err }

const (
	maxPending = 4 << 20 // bytes
	maxWrite   = 4 << 20 // bytes of the events of one append; the server accepts messages of 8 MiB
	maxFailed  = 100     // errors that Flush returns one by one
)

// NewWriter returns a writer to a session and connects in the background. It ends with
// ctx; what is not stored by then fails. Call [Writer.Close] at the end.
func (c *Client) NewWriter(ctx context.Context, session string, o WriterOptions) *Writer {
	if o.MaxPending <= 0 {
		o.MaxPending = maxPending
	}
	w := &Writer{
		client: c, session: session, options: o, change: make(chan struct{}), ended: make(chan struct{}),
		producer: tapedeck.Producer{ID: tapedeck.NewID("wtr_")},
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w
}

// Append queues events, which are stored together or not at all, and returns the number
// of the append: 0 for the first. It waits only while too much is pending. An error means
// that nothing was queued: the events are [tapedeck.Invalid] or [tapedeck.TooLarge], or
// the writer has ended. Whether the events are stored is known from [Writer.Flush] or
// [WriterOptions].OnDone.
func (w *Writer) Append(ctx context.Context, events ...tapedeck.Event) (seq int64, err error) {
	_, drafts, err := tapedeck.Drafts(events, nil, time.Time{}) // a zero time is for the server to set
	if err != nil {
		return 0, err
	}
	b := []byte{'['}
	for i, d := range drafts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, d.Record(0).Data...)
	}
	b = append(b, ']')
	if len(b) > maxWrite {
		return 0, tapedeck.Errorf(tapedeck.TooLarge, "the append has more than %d MiB", maxWrite>>20).WithHint("append it in parts, or with Client.Append")
	}
	err = w.await(ctx, func() bool { return w.bytes == 0 || w.bytes+len(b) <= w.options.MaxPending }, func() {
		seq = w.next
		w.next++
		w.bytes += len(b)
		w.queue = append(w.queue, &write{seq: seq, events: b})
		if w.sent == len(w.queue)-1 {
			w.wake()
		}
	})
	return seq, err
}

// await waits until ready holds and then calls do, both with the lock. An error means
// that do was not called.
func (w *Writer) await(ctx context.Context, ready func() bool, do func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.closed:
			return tapedeck.Errorf(tapedeck.Invalid, "the writer is closed")
		case w.fatal != nil:
			return w.fatal
		case ready():
			do()
			return nil
		}
		change := w.change
		w.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			w.mu.Lock()
			return ctx.Err()
		}
		w.mu.Lock()
	}
}

// wake wakes everybody who waits for a change. It needs the lock.
func (w *Writer) wake() {
	close(w.change)
	w.change = make(chan struct{})
}

// Flush waits until all appends so far are answered. It returns the errors of those that
// were not stored and that no earlier Flush has returned, each a [*WriteError], or the
// error of ctx.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for last := w.next - 1; len(w.queue) > 0 && w.queue[0].seq <= last; {
		change := w.change
		w.mu.Unlock()
		select {
		case <-change:
			w.mu.Lock()
		case <-ctx.Done():
			w.mu.Lock()
			return ctx.Err()
		}
	}
	list := w.failed
	if w.more > 0 {
		list = append(list, fmt.Errorf("%d further appends were not stored", w.more))
	}
	w.failed, w.more = nil, 0
	return errors.Join(list...)
}

// Close flushes and ends the writer. If ctx ends first, the appends that have no answer
// by then fail: whether they are stored is not known.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	err := w.Flush(ctx)
	w.cancel()
	<-w.ended
	return err
}

// run connects until the writer ends.
func (w *Writer) run(ctx context.Context) {
	defer close(w.ended)
	for attempt := 1; ; attempt++ {
		answered, err := w.connect(ctx)
		if answered {
			attempt = 1
		}
		switch {
		case ctx.Err() != nil:
			w.fail(tapedeck.Errorf(tapedeck.Unavailable, "the writer ended before the answer; whether it was stored is not known").Because(ctx.Err()))
			return
		case !passing(err):
			w.fail(err)
			return
		}
		if w.options.OnReconnect != nil {
			w.options.OnReconnect(attempt, err)
		}
		select {
		case <-time.After(backOff(attempt)):
		case <-ctx.Done():
		}
	}
}

// fail ends the writer: all appends without an answer fail.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fatal = err
	for len(w.queue) > 0 {
		w.finishFirst(tapedeck.Appended{First: -1, Next: -1}, err)
	}
	w.wake()
}

// finishFirst removes the first append of the queue. It needs the lock.
func (w *Writer) finishFirst(done tapedeck.Appended, err error) {
	x := w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	w.sent = max(w.sent-1, 0)
	w.bytes -= len(x.events)
	if err != nil {
		if len(w.failed) < maxFailed {
			w.failed = append(w.failed, &WriteError{x.seq, err})
		} else {
			w.more++
		}
	}
	if w.options.OnDone != nil {
		w.options.OnDone(x.seq, done, err)
	}
}
