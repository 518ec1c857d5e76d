package engine

import (
	"sync"

	"github.com/tapedeck/tapedeck"
)

// Bounds of a [queue]: an agent that is faster than the disk has to wait.
const (
	maxQueued      = 1024
	maxQueuedBytes = 1 << 20
)

// A queue has the events of an agent that are not in the log yet. Deltas of one
// message that wait in it together become one event, with cuts that tell when each
// of them arrived. The order of other events does not change.
type queue struct {
	ready chan struct{} // has an element when there is work

	mu        sync.Mutex
	notFull   sync.Cond
	events    []queued
	bytes     int
	fixed     int   // 0 while the queue has only deltas that can still grow; see growing
	closed    bool  // the agent has ended
	err       error // the error with which it ended, or nil
	abandoned bool  // no more events are accepted
	begun     bool  // the agent has said or done something

	wake func() // while the recorder is parked: continues it, in a goroutine of its own

	waiting []chan struct{} // to close when the events in the queue are written
	writing []chan struct{} // to close when the events drained last are written
}

// A queued event is an event in the queue.
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

// push adds an event, and waits while the queue is full. It reports false if the
// queue accepts no more events.
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
	q.begun = q.begun || ev.Type != tapedeck.AgentStarted // a program that has started may say nothing yet
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

// maxLanes is how many events back lastOf looks. So deltas of up to 16 runs at once
// are joined.
const maxLanes = 16

// lastOf returns the newest event of a run; the agent and each sub-agent have their
// own runs, and only the order within one matters. It returns nil if that event is
// too far back.
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
	q.continueParked()
}

// nudge notifies the recorder from outside of the queue.
func (q *queue) nudge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notify()
}

// continueParked continues a parked recorder. The caller holds mu.
func (q *queue) continueParked() {
	if q.wake != nil {
		go q.wake()
		q.wake = nil
	}
}

// park keeps wake, and calls it once when there is work, in a new goroutine. It reports
// false if there is work already.
func (q *queue) park(wake func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) > 0 || len(q.events) > 0 || q.closed {
		return false
	}
	q.wake = wake
	return true
}

// unpark forgets what [queue.park] kept. It reports false if that is called already.
func (q *queue) unpark() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	parked := q.wake != nil
	q.wake = nil
	return parked
}

// rouse calls what [queue.park] keeps, if it keeps something.
func (q *queue) rouse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.continueParked()
}

// drain removes and returns all events.
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

// written returns a channel that is closed when all events pushed so far are in the
// log.
func (q *queue) written() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := make(chan struct{})
	q.waiting = append(q.waiting, c)
	q.notify()
	return c
}

// markWritten tells the queue that the drained events are in the log.
func (q *queue) markWritten() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.writing {
		close(c)
	}
	q.writing = nil
}

// close tells the queue that the agent has ended, with an error or nil.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.err = true, err
	q.notify()
}

// abandon makes the queue refuse all further events.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned = true
	q.notFull.Broadcast()
}

// drained reports whether the agent has ended and all its events were drained.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.events) == 0
}

// outcome returns the error with which the agent ended, nil if it has not ended.
func (q *queue) outcome() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// hasBegun reports whether the agent has said or done something.
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
