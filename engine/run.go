package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Causes for which a run is stopped from outside.
var (
	errCancelled = errors.New("cancelled")
	errShutdown  = errors.New("the server was stopped")
)

// A run is one invocation that this engine drives.
type run struct {
	engine *Engine
	agent  Agent
	in     tapedeck.Invocation
	offset int64 // of its first event

	ctx  context.Context
	stop context.CancelCauseFunc
	done chan struct{} // closed when it has ended, and result is set

	queue  *queue
	result ending
}

func newRun(e *Engine, agent Agent, t tapedeck.Task) *run {
	r := &run{engine: e, agent: agent, done: make(chan struct{}), queue: newQueue()}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	thread := t.Thread
	if thread == "" {
		thread = tapedeck.MainThread
	}
	r.in = tapedeck.Invocation{ID: tapedeck.NewID("inv_"), Session: t.Session, Thread: thread, Task: t.Text, Config: t.Config, History: r.history}
	return r
}

// history yields the events of the session before this invocation.
func (r *run) history(ctx context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for ev, err := range tapedeck.Events(ctx, r.engine.store, r.in.Session, 0) {
			if err == nil && ev.Offset >= r.offset || !yield(ev, err) {
				return
			}
		}
	}
}

// stamp fills in what a runner does not know.
func (r *run) stamp(ev *tapedeck.Event) {
	ev.Thread, ev.Invocation = r.in.Thread, r.in.ID
	if ev.Actor == "" {
		ev.Actor = "agent:" + r.agent.Name
	}
	if ev.Time.IsZero() {
		ev.Time = r.engine.options.Now()
	}
}

// drive runs the agent to its end. One goroutine takes what the agent says into
// a bounded queue, this one writes it down; what comes while an append is under
// way goes with the next.
func (r *run) drive() {
	defer r.engine.discharge(r)
	defer r.stop(nil)
	agent := make(chan error, 1)
	go func() {
		agent <- r.listen()
		r.queue.close()
	}()
	writeErr := r.record()
	var agentErr error
	if r.queue.drained() {
		agentErr = <-agent // it has ended; otherwise it is left to itself
	}
	r.result = r.end(r.terminal(agentErr, writeErr))
	if err := r.result.err; err != nil && !errors.Is(err, errEnded) {
		r.engine.options.Logger.Error("a run could not be ended; it will be at the next start",
			"session", r.in.Session, "invocation", r.in.ID, "error", err)
	}
}

// end writes the terminal event. While the store cannot take it the run stays
// open, and so it is tried again until it can or the engine is shut down: no run
// may stay "running" for ever.
func (r *run) end(t terminal) ending {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		end := r.engine.finish(context.WithoutCancel(r.ctx), r.in.Session, r.in.ID, t)
		if tapedeck.KindOf(end.err) != tapedeck.Unavailable {
			return end
		}
		select {
		case <-time.After(pause):
		case <-r.engine.closed:
			return end
		}
	}
}

// record writes down what is in the queue until the agent has ended. When the
// run is stopped, what the agent still says counts, too, but not for long: then
// it is left to itself. An error means that something could not be written.
func (r *run) record() error {
	var failed error
	var kill <-chan time.Time
	stopped := r.ctx.Done()
	for !r.queue.drained() {
		select {
		case <-r.queue.ready:
			if failed = r.flush(); failed != nil {
				r.queue.abandon()
				r.stop(failed)
				return failed
			}
		case <-stopped:
			t := time.NewTimer(r.engine.options.KillAfter)
			defer t.Stop()
			stopped, kill = nil, t.C
		case <-kill:
			r.queue.abandon()
			r.engine.options.Logger.Warn("an agent did not stop in time and is left to itself",
				"agent", r.agent.Name, "invocation", r.in.ID)
			return nil
		}
	}
	return nil
}

// listen takes what the agent says.
func (r *run) listen() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the runner of %s failed: %v", r.agent.Name, p)
		}
	}()
	for ev, err := range r.agent.Runner.Run(r.ctx, r.in) {
		if err != nil {
			return err
		}
		ev.Time = time.Time{} // ours, not the runner's
		r.stamp(&ev)
		if !r.queue.put(ev) {
			return nil
		}
	}
	return nil
}

// Bounds of the repetition of an append that the store could not take: a disk
// that is full for a moment must not end a run.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	giveUp     = 30 * time.Second
)

// flush appends what is in the queue.
func (r *run) flush() error {
	for {
		events := r.queue.take()
		if len(events) == 0 {
			return nil
		}
		if err := r.append(events); err != nil {
			return err
		}
	}
}

func (r *run) append(events []tapedeck.Event) error {
	begin, pause := r.engine.options.Now(), firstRetry
	for {
		// Each try gets events of its own: an append changes them.
		a := tapedeck.Append{Session: r.in.Session, Events: append([]tapedeck.Event(nil), events...)}
		_, err := r.engine.write(context.WithoutCancel(r.ctx), a, nil)
		if tapedeck.KindOf(err) != tapedeck.Unavailable || r.engine.options.Now().Sub(begin) > giveUp {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-r.ctx.Done():
			t.Stop()
			return err
		}
		pause = min(2*pause, lastRetry)
	}
}
