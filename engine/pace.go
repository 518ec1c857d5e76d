package engine

import "time"

// When many agents send deltas at once, each agent's deltas of a short time become one
// event. So the cost of recording grows with the number of agents, and not with their
// speed. With 200 agents that time is less than 0.1 s, which users do not notice. With
// few agents there is no delay, and only deltas are ever delayed.
const (
	paceEach  = 400 * time.Microsecond // delay per agent
	paceFrom  = 10 * time.Millisecond  // a shorter delay counts as none
	paceLimit = 100 * time.Millisecond
)

// pace returns how long a run waits between two appends, if the next has only deltas.
func (e *Engine) pace() time.Duration {
	d := min(time.Duration(e.driven())*paceEach, paceLimit)
	if d < paceFrom {
		return 0
	}
	return d
}

// A pacer delays the appends of a run.
type pacer struct {
	wrote time.Time
	due   <-chan time.Time // nil while no append is delayed
}

// wait reports whether the next append is delayed, so that deltas can be joined.
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

// growing reports whether the queue has only deltas that can still grow, at most one
// event of each run, and the agent has not ended.
func (q *queue) growing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && len(q.events) > 0 && q.fixed == 0 && len(q.events) <= maxLanes && q.bytes < maxQueuedBytes/2
}
