// Package group gathers the requests of many callers into groups, which one writer
// commits: a large commit costs the disk about as much as a small one.
package group

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// BigSize is a size in bytes. A request of this size or more gets a group of its
// own, and a group of smaller requests is full when it reaches this size.
const BigSize = 1 << 20

// A Request is a task on its way through the writer.
type Request[T any] struct {
	Task T
	Size int           // bytes
	Done chan struct{} // the writer closes it
	Err  error         // set before Done is closed
	Left bool          // the caller has stopped waiting, so the writer must not touch Task
}

// Wait waits until the request is written, or until ctx ends. The writer holds processing
// while it processes requests: until then the caller must not change the memory that Task
// refers to.
func (r *Request[T]) Wait(ctx context.Context, processing sync.Locker) error {
	select {
	case <-r.Done:
		return r.Err
	case <-ctx.Done():
	}
	processing.Lock()
	r.Left = true
	processing.Unlock()
	return ctx.Err()
}

// A Queue holds the requests of all callers until the writer takes them as a
// group.
type Queue[T any] struct {
	Wake chan struct{} // has an element when the writer should look at the queue

	mu       sync.Mutex
	requests []*Request[T]
	big      []*Request[T]
	bigNext  bool // the next group is a big request
	closed   bool

	wanted   int           // number of requests that Gather waits for
	gathered chan struct{} // closed when they are queued
}

// New returns an empty queue.
func New[T any]() *Queue[T] { return &Queue[T]{Wake: make(chan struct{}, 1)} }

// Push adds a request. It reports whether the queue is open, and whether the
// request is the first: then its caller must write it or call Signal.
func (q *Queue[T]) Push(r *Request[T]) (open, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false, false
	case r.Size >= BigSize:
		q.big = append(q.big, r)
		q.enough(true)
		return true, true
	}
	q.requests = append(q.requests, r)
	q.enough(len(q.requests) >= q.wanted)
	return true, len(q.requests) == 1
}

// enough ends the wait of Gather, if yes.
func (q *Queue[T]) enough(yes bool) {
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

// Gather waits for the next requests after a group of n.
func (q *Queue[T]) Gather(n int) {
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

// Len returns the number of requests.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests) + len(q.big)
}

// Signal wakes the writer.
func (q *Queue[T]) Signal() {
	select {
	case q.Wake <- struct{}{}:
	default:
	}
}

// Next returns the next group, and whether there may be more. Big requests take
// turns with the others, so that neither kind starves.
func (q *Queue[T]) Next() (group []*Request[T], more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.big) > 0 && (q.bigNext || len(q.requests) == 0) {
		group, q.big, q.bigNext = q.big[:1:1], q.big[1:], false
		return group, true
	}
	size, n := 0, 0
	for n < len(q.requests) && size < BigSize {
		size += q.requests[n].Size
		n++
	}
	group, q.requests, q.bigNext = q.requests[:n:n], q.requests[n:], true
	if len(q.requests) == 0 {
		q.requests = nil // the group owns that memory now
	}
	return group, n > 0 || !q.closed
}

// Close ends the queue: the requests that it has are still taken.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.enough(true)
	q.mu.Unlock()
	q.Signal()
}
