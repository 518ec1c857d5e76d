package engine

import (
	"cmp"
	"context"
	"time"
)

// A recorder appends the events in the queue of a run until its agent has ended. One
// goroutine at a time uses it.
type recorder struct {
	*run
	watch   *watch
	pacer   pacer
	stopped <-chan struct{}  // nil after the run was stopped
	kill    <-chan time.Time // when it does not wait for the agent any longer
	timer   *time.Timer      // of kill
}

func newRecorder(r *run) *recorder {
	c := &recorder{run: r, watch: newWatch(r.limits()), stopped: r.ctx.Done()}
	if c.mayPark() && r.from.run != nil { // the end of the run above stops this one
		context.AfterFunc(r.ctx, r.queue.rouse)
	}
	return c
}

// mayPark reports whether the run may wait for long with nothing to record. Then it has no
// goroutine here: thousands of such runs may wait.
func (c *recorder) mayPark() bool {
	return c.durable && c.watch.tooLong == nil && c.watch.tooSilent == nil
}

// work records, and ends the run when its agent has ended. If the run waits, it returns,
// and the queue calls it again.
func (c *recorder) work() {
	parked := false
	defer func() {
		if parked {
			return
		}
		c.watch.stop()
		if c.timer != nil {
			c.timer.Stop()
		}
		c.stop(nil)
		c.engine.unregister(c.run)
	}()
	var err error
	if parked, err = c.record(); !parked {
		c.end(err)
	}
}

// record appends the events in the queue until the agent has ended. When the run is
// stopped, it still appends the agent's events for KillAfter; then it stops
// waiting for the agent. An error means that an event could not be appended.
func (c *recorder) record() (parked bool, err error) {
	for !c.queue.drained() {
		if c.park() {
			return true, nil
		}
		select {
		case <-c.queue.ready: // once for each drain, so that an agent that never pauses can still be killed
			if c.pacer.wait(c.run) {
				continue
			}
			if err := c.write(); err != nil {
				return false, err
			}
		case <-c.pacer.due:
			if err := c.write(); err != nil {
				return false, err
			}
		case <-c.watch.tooLong:
			c.stop(c.watch.errTooLong())
		case <-c.watch.tooSilent:
			c.stop(c.watch.errTooSilent())
		case <-c.stopped:
			c.timer = time.NewTimer(cmp.Or(c.agent.KillAfter, c.engine.options.KillAfter))
			c.stopped, c.kill = nil, c.timer.C
		case <-c.kill:
			c.queue.abandon()
			c.engine.options.Logger.Warn("an agent did not stop in time; the server does not wait for it any longer",
				"agent", c.agent.Name, "invocation", c.in.ID)
			return false, c.append(c.queue.drain()) // events that arrived in time
		}
	}
	return false, nil
}

// park leaves the run to its queue, which continues work when there is something to do. It
// reports false if there is something now.
func (c *recorder) park() bool {
	if !c.mayPark() || c.pacer.due != nil || c.stopped == nil || !c.queue.park(c.work) {
		return false
	}
	// The run may have been stopped before the queue knew that this one is parked. The
	// goroutine that takes it back continues.
	return c.ctx.Err() == nil || !c.queue.unpark()
}

// write appends what is in the queue.
func (c *recorder) write() error {
	events := c.queue.drain()
	if err := c.append(events); err != nil {
		c.queue.abandon()
		c.stop(err)
		return err
	}
	c.queue.markWritten()
	c.pacer = pacer{wrote: time.Now()}
	c.watch.noteWritten(events, c.questions.waitsForPeople())
	c.stopAtLimit(events)
	return nil
}
