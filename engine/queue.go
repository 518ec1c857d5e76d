package engine

import (
	"sync"

	"github.com/tapedeck/tapedeck"
)

// Bounds of a [queue]: an agent that speaks faster than the disk is held back.
const (
	maxQueued      = 1024
	maxQueuedBytes = 1 << 20
)

// A queue is what an agent has said and the log has not got yet. Deltas of one
// message that wait here together become one event, with cuts that tell when
// each of them came; the order of different events stays.
type queue struct {
	ready chan struct{} // has an element when there is something to do

	mu        sync.Mutex
	notFull   sync.Cond
	events    []queued
	bytes     int
	fixed     int   // how many of the events cannot grow, or are followed by one that cannot be joined to them
	closed    bool  // the agent has ended
	err       error // and with this
	abandoned bool  // nothing is taken any more
	begun     bool  // something was said

	waiting []chan struct{} // to be closed when what is in the queue is written
	writing []chan struct{} // likewise what was taken last
}

// A queued event may still grow.
type queued struct {
	tapedeck.Event
	canGrow bool // it is a delta, and others can be joined to it
	delta   delta
}

func newQueue() *queue {
	q := &queue{ready: make(chan struct{}, 1)}
	q.notFull.L = &q.mu
	return q
}

// put adds an event, and waits while there is no room. It reports false if
// nobody wants it any more.
func (q *queue) push(ev tapedeck.Event) bool {
	d, isDelta := deltaOf(&ev)
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.abandoned && (len(q.events) >= maxQueued || q.bytes >= maxQueuedBytes) {
		q.notFull.Wait()
	}
	if q.abandoned {
		return false
	}
	q.begun = true
	q.bytes += len(ev.Data)
	last := q.lastOf(ev.Invocation)
	if !isDelta || last == nil || !last.join(&ev, &d) {
		if !isDelta || last != nil {
			q.fixed++
		}
		q.events = append(q.events, queued{ev, isDelta, d})
	}
	q.notify()
	return true
}

// maxLanes is how many sub-agents may speak at once whose deltas are joined.
const maxLanes = 16

// lastOf returns the newest event of a run, or of a sub-agent's: the order of what
// each of them says is what counts. It is nil if it lies too far back.
func (q *queue) lastOf(invocation string) *queued {
	for i := len(q.events) - 1; i >= max(0, len(q.events)-maxLanes); i-- {
		if q.events[i].Invocation == invocation {
			return &q.events[i]
		}
	}
	return nil
}

func (q *queue) notify() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns what is there.
func (q *queue) drain() []tapedeck.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]tapedeck.Event, len(q.events))
	for i := range q.events {
		out[i] = q.events[i].event()
	}
	q.events, q.bytes, q.fixed = nil, 0, 0
	q.writing, q.waiting = append(q.writing, q.waiting...), nil
	q.notFull.Broadcast()
	return out
}

// written returns a channel that is closed when everything that was put into the
// queue so far is written.
func (q *queue) written() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := make(chan struct{})
	q.waiting = append(q.waiting, c)
	q.notify()
	return c
}

// wrote says that what was taken is written.
func (q *queue) markWritten() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.writing {
		close(c)
	}
	q.writing = nil
}

// close says that the agent has ended, with an error or nil.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.err = true, err
	q.notify()
}

// abandon drops what comes from now on.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned = true
	q.notFull.Broadcast()
}

// drained reports whether the agent has ended and all of it was taken.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.events) == 0
}

// outcome returns the error with which the agent has ended, nil if it has not.
func (q *queue) outcome() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// spoke reports whether the agent has said anything.
func (q *queue) hasBegun() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun
}

// join joins a delta to the event, if the event can grow and the delta continues
// it.
func (q *queued) join(ev *tapedeck.Event, d *delta) bool {
	return q.canGrow && q.Type == ev.Type && q.Turn == ev.Turn && q.Instance == ev.Instance && q.Actor == ev.Actor &&
		q.delta.join(d, q.Time)
}

// event returns the event with all that was joined to it.
func (q *queued) event() tapedeck.Event {
	if q.delta.joined > 0 {
		q.Data = q.delta.data()
	}
	return q.Event
}
