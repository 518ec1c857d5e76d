package sqlite

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// bigSize is the size in bytes from which on a request is written in a group of
// its own, and the most that other groups gather.
const bigSize = 1 << 20

// rowSize is what a task counts that changes a few rows of the catalogue.
const rowSize = 4096

// A task is what a caller wants written. do decides and writes it within the
// transaction of the group; its error is that of the caller alone, unless it is
// a [dbError], which spoils the group. It may be called again after that.
type task interface{ do(w *writer) error }

// A request is a task on its way through the writer.
type request struct {
	task
	size int // bytes
	done chan struct{}
	err  error // set before done is closed
	left bool  // the caller waits no more, and what task refers to is its own again
}

// A queue holds the requests of all callers until the writer takes them, all
// that are there at once.
type queue struct {
	wake chan struct{} // has an element when something may have happened

	mu       sync.Mutex
	requests []*request
	big      []*request
	turn     bool // whether it is the turn of a big one
	closed   bool

	wanted   int           // requests that gather waits for
	gathered chan struct{} // closed when they are there
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a request. It reports false if the queue is closed, and whether the
// caller has to see to it that somebody takes it: others have not been told.
func (q *queue) push(r *request) (open, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false, false
	case r.size >= bigSize:
		q.big = append(q.big, r)
		q.enough(true)
		return true, true
	}
	q.requests = append(q.requests, r)
	q.enough(len(q.requests) >= q.wanted)
	return true, len(q.requests) == 1
}

// enough ends the waiting of gather.
func (q *queue) enough(yes bool) {
	if yes && q.gathered != nil {
		close(q.gathered)
		q.gathered = nil
	}
}

// Who has just been told wants to write again, most often; and a commit costs the
// disk the same whether it is of few or of many. So after a group of some the next
// half of them is waited for, but no longer than a commit takes.
const (
	fewRequests = 8
	patience    = 100 * time.Microsecond
)

// gather waits for requests after a group of n.
func (q *queue) gather(n int) {
	runtime.Gosched() // they run first
	q.mu.Lock()
	q.wanted = (n + len(q.requests)) / 2
	if n < fewRequests || q.closed || len(q.big) > 0 || len(q.requests) >= q.wanted {
		q.mu.Unlock()
		return
	}
	gathered := make(chan struct{})
	q.gathered = gathered
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-gathered:
	case <-timer.C:
		q.mu.Lock()
		q.gathered = nil
		q.mu.Unlock()
	}
}

// waiting reports whether there are requests.
func (q *queue) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests)+len(q.big) > 0
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the next group and whether there will be more. Big requests take
// turns with all the others, so that neither kind starves.
func (q *queue) take() (group []*request, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.big) > 0 && (q.turn || len(q.requests) == 0) {
		group, q.big, q.turn = q.big[:1:1], q.big[1:], false
		return group, true
	}
	size, n := 0, 0
	for n < len(q.requests) && size < bigSize {
		size += q.requests[n].size
		n++
	}
	group, q.requests, q.turn = q.requests[:n:n], q.requests[n:], true
	if len(q.requests) == 0 {
		q.requests = nil // the group owns that memory now
	}
	return group, n > 0 || !q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.enough(true)
	q.mu.Unlock()
	q.ring()
}

// submit has a task written and waits until it is. While callers come one at a
// time, each writes by himself: then nothing is handed from one goroutine to
// another and back. When they come together, that is for [writer.run], for which
// they gather.
func (w *writer) submit(ctx context.Context, t task, size int) error {
	r := &request{task: t, size: size, done: make(chan struct{})}
	open, first := w.queue.push(r)
	if !open {
		return errClosed()
	}
	if first && !w.lead() {
		w.queue.ring()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	// While the writer looks at the request, what it refers to is not the
	// caller's to change.
	w.mu.Lock()
	r.left = true
	w.mu.Unlock()
	return ctx.Err()
}
