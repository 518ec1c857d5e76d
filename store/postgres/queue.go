package postgres

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// bigSize is a size in bytes. A request of this size or more gets a group of its
// own, and a group of smaller requests is full when it reaches this size.
const bigSize = 1 << 20

// rowSize is the size of a task that changes a few rows of the catalogue.
const rowSize = 4096

// A task is a change that a caller asks for. do decides and writes it within the
// transaction of the group. Its error concerns only this caller, unless it is a
// [dbError]: that spoils the group, and do may be called again.
type task interface{ do(w *writer) error }

// A request is a task on its way through the writer.
type request struct {
	task
	size int // bytes
	done chan struct{}
	err  error // set before done is closed
	left bool  // the caller has stopped waiting, so the writer must not touch task
}

// A queue holds the requests of all callers until the writer takes them as a
// group.
type queue struct {
	wake chan struct{} // has an element when the writer should look at the queue

	mu       sync.Mutex
	requests []*request
	big      []*request
	bigNext  bool // the next group is a big request
	closed   bool

	wanted   int           // number of requests that gather waits for
	gathered chan struct{} // closed when they are queued
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a request. It reports whether the queue is open, and whether the
// request is the first: then its caller must wake the writer.
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

// enough ends the wait of gather, if yes.
func (q *queue) enough(yes bool) {
	if yes && q.gathered != nil {
		close(q.gathered)
		q.gathered = nil
	}
}

// Most callers append again as soon as they have an answer, and a large commit
// costs the disk as much as a small one. So after a group of fewRequests or more
// the writer waits for half of it to return, for at most patience, which is about
// as long as a commit takes.
const (
	fewRequests = 8
	patience    = 100 * time.Microsecond
)

// gather waits for the next requests after a group of n.
func (q *queue) gather(n int) {
	runtime.Gosched() // let the callers run first
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

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// nextGroup returns the next group, and whether there may be more. Big requests take
// turns with the others, so that neither kind starves.
func (q *queue) nextGroup() (group []*request, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.big) > 0 && (q.bigNext || len(q.requests) == 0) {
		group, q.big, q.bigNext = q.big[:1:1], q.big[1:], false
		return group, true
	}
	size, n := 0, 0
	for n < len(q.requests) && size < bigSize {
		size += q.requests[n].size
		n++
	}
	group, q.requests, q.bigNext = q.requests[:n:n], q.requests[n:], true
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
	q.signal()
}

// submit waits until a task is written.
func (w *writer) submit(ctx context.Context, t task, size int) error {
	r := &request{task: t, size: size, done: make(chan struct{})}
	open, first := w.queue.push(r)
	if !open {
		return w.store.errClosed()
	}
	if first {
		w.queue.signal()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	// The lock waits for a writer that is processing the request: until then the
	// caller must not change the memory that the task refers to.
	w.mu.Lock()
	r.left = true
	w.mu.Unlock()
	return ctx.Err()
}
