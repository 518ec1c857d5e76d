package engine

import "time"

// When many agents speak at once, what each says in a moment is written as one
// event, so that what it costs to record them grows with how many there are and
// not with how fast they speak. It is a moment that nobody sees: with 200 agents
// less than a tenth of a second. A few agents are not held back at all, and
// nothing but deltas ever is.
const (
	paceEach = 400 * time.Microsecond // of the moment, for each agent
	paceFrom = 10 * time.Millisecond  // a shorter one is none
	paceMost = 100 * time.Millisecond
)

// pace returns how long after its last append a run waits with the next, if that
// is of deltas only.
func (e *Engine) pace() time.Duration {
	d := min(time.Duration(e.Running())*paceEach, paceMost)
	if d < paceFrom {
		return 0
	}
	return d
}

// A pacer holds a run back.
type pacer struct {
	wrote time.Time
	due   <-chan time.Time // nil if it does not wait
}

// wait reports whether what is in the queue may grow for a while.
func (p *pacer) wait(r *run) bool {
	if !r.queue.growing() {
		p.due = nil
		return false
	}
	if p.due != nil {
		return true
	}
	d := r.engine.pace() - time.Since(p.wrote)
	if d <= 0 {
		return false
	}
	p.due = time.After(d)
	return true
}

// growing reports whether the queue has nothing but deltas of one message, or of
// one of each sub-agent, and the agent may say more.
func (q *queue) growing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && len(q.events) > 0 && q.fixed == 0 && len(q.events) <= maxLanes && q.bytes < maxQueuedBytes/2
}
