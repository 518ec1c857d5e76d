package sqlite

import (
	"context"
	"sync"
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
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a request. It reports false if the queue is closed.
func (q *queue) push(r *request) bool {
	q.mu.Lock()
	closed, first := q.closed, len(q.requests) == 0
	switch {
	case closed:
	case r.size >= bigSize:
		q.big = append(q.big, r)
		first = true
	default:
		q.requests = append(q.requests, r)
	}
	q.mu.Unlock()
	if first && !closed {
		q.ring()
	}
	return !closed
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
	q.mu.Unlock()
	q.ring()
}

// submit has a task written and waits until it is.
func (w *writer) submit(ctx context.Context, t task, size int) error {
	r := &request{task: t, size: size, done: make(chan struct{})}
	if !w.queue.push(r) {
		return errClosed()
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
