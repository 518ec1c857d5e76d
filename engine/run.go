package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Causes with which the engine stops a run.
var (
	errCancelled = errors.New("cancelled")
	errShutdown  = errors.New("the server was stopped")
)

// A run is one invocation that this engine drives.
type run struct {
	engine *Engine
	agent  *Agent
	in     tapedeck.Invocation
	gen    int64 // of its session
	offset int64 // its first event
	heard  int64 // the events before it are the agent's history

	ctx  context.Context
	stop context.CancelCauseFunc
	done chan struct{} // closed when it has ended and result is set

	queue     *queue
	subagents subagents
	questions questions
	instance  string           // the instance of the agent in its thread
	message   *payload.Message // the task; nil if the client sent only other messages
	asked     *view.Message    // the task, if the thread had it already
	prompt    *string          // a new system text of its model, which the log does not have yet; nil for none
	result    ending
	from      parentage
	usage     tally
	budget    tapedeck.Amount // of this run
	meter     meter
	pausing   sync.Mutex // held while people are asked whether it may continue
	lost      int        // bytes of the previous run that the resume context leaves out

	owner   string           // the engine that started it, or the run that started it
	durable bool             // see [runner.Durable]
	settled func()           // says that it works no longer, for its [trial]; nil if it is not on trial
	rested  bool             // it has said so
	upTo    int64            // begun yields events before this offset; 0 for the head
	own     []tapedeck.Event // its opening, see [runner.Opening]
	inbox   inbox
	steered chan struct{} // see [tapedeck.Invocation.Steered]
	failure string        // why it failed, for people
	trace   string        // see [tapedeck.Meta]
}

func newRun(e *Engine, agent *Agent, t api.Task, f predecessor) *run {
	r := &run{engine: e, agent: agent, done: make(chan struct{}), queue: newQueue(), instance: instanceOf(f.instances, t.Session, agent.Name, t.Thread), prompt: f.prompt, lost: f.lost, owner: e.id, durable: isDurable(agent), budget: f.budget, steered: make(chan struct{}, 1)}
	r.ctx, r.stop = r.cancellable()
	r.in = tapedeck.Invocation{
		ID: cmp.Or(t.Invocation, tapedeck.NewID("inv_")), Session: t.Session, Thread: t.Thread, Task: t.Text, Config: t.Config, History: r.history,
		Resumes: f.resumes, Context: f.context, Unheard: f.unheard, Ask: r.askInBudget, Proceed: r.proceed, Stored: r.stored, Steer: r.steer, Steered: r.steered,
		Folder: f.folder, Link: f.link,
	}
	r.steered <- struct{}{} // what waits may have been sent to an earlier run
	if r.message = task(&t); r.message != nil {
		r.in.Message, _ = json.Marshal(r.message) // its raw members are valid JSON; so are those of the input
	}
	if r.asked = f.asked; r.asked != nil {
		r.message = nil
	}
	if input := inputOf(&t); input != nil {
		r.in.Input, _ = json.Marshal(input)
	}
	if r.in.Delegates = e.delegates(agent, 0); len(r.in.Delegates) > 0 {
		r.in.Delegate = r.delegate
	}
	r.in.Task = view.TaskWithContext(f.context, t.Text)
	if r.durable {
		r.in.Inbox, r.in.Begun = r.inbox.make(r.rests), r.begun
	}
	return r
}

// cancellable returns the context of a run that no other run has started. A run that waits
// has no goroutine that could hear of its end, so stop tells its queue. A function for
// [context.AfterFunc] would take 300 bytes more.
func (r *run) cancellable() (ctx context.Context, stop context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, func(cause error) {
		cancel(cause)
		r.queue.rouse()
	}
}

// inputOf returns what a client sent beside its messages, with the state that the
// thread has from now on, if it has changed.
func inputOf(t *api.Task) *payload.RunInput {
	if t.State == nil {
		return t.Input
	}
	input := payload.RunInput{Messages: []payload.Message{}}
	if t.Input != nil {
		input = *t.Input
	}
	input.State = t.State
	return &input
}

// history yields the active events before this invocation.
func (r *run) history(ctx context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		t, err := r.engine.views.Timeline(ctx, r.in.Session, r.heard)
		if err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		active(tapedeck.Events(ctx, r.engine.store, r.in.Session, 0), t, r.heard)(yield)
	}
}

// actor is who does what the agent of the run does.
func (r *run) actor() string { return "agent:" + r.agent.Name }

// stamp fills in the members that a runner does not know.
func (r *run) stamp(ev *tapedeck.Event) {
	ev.Offset, ev.Thread, ev.Invocation = 0, r.in.Thread, r.in.ID
	if ev.Actor == "" {
		ev.Actor = r.actor()
	}
	if ev.Instance == "" && !isDelta(ev.Type) { // a given instance is that of a sub-agent
		ev.Instance = r.instance
	}
	if ev.Time.IsZero() {
		ev.Time = r.engine.options.Now()
	}
}

// drive runs the agent to its end. One goroutine moves the agent's events into a
// bounded queue, and a [recorder] appends them. Events that arrive during an append are
// in the next one.
func (r *run) drive() {
	if r.durable { // the log has what these say, and it may wait for long
		r.own, r.in.Config, r.in.Message, r.in.Delegates, r.prompt, r.message = nil, nil, nil, nil, nil, nil
	}
	r.meter.begin(r.engine.options.Now())
	go r.consume()
	newRecorder(r).work()
}

// end appends the terminal event of the run, after its agent has ended.
func (r *run) end(writeErr error) {
	if r.staysOpen() {
		r.result = ending{status: tapedeck.StatusInterrupted}
		return
	}
	t := r.terminal(r.queue.outcome(), writeErr)
	r.failure = t.message()
	t.before = r.closeQuestions()
	r.usage.addTo(&t.event)
	r.result = r.writeEnd(t)
	if err := r.result.err; err != nil && !isOver(err) {
		r.engine.options.Logger.Error("a run could not be ended; the next start ends it",
			"session", r.in.Session, "invocation", r.in.ID, "error", err)
	}
}

// writeEnd appends the terminal event. While the store is unavailable it tries again
// until the engine is shut down, because no run may stay open forever.
func (r *run) writeEnd(t terminal) ending {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		end := r.engine.finish(context.Background(), r.in.Session, r.in.ID, t, r.isOpen)
		if tapedeck.KindOf(end.err) != tapedeck.Unavailable || !r.engine.sleep(pause) {
			return end
		}
	}
}

// sleep waits for d. It reports false if the engine is shut down before.
func (e *Engine) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-e.life.Done():
		return false
	}
}

// stored is [tapedeck.Invocation.Stored] of a run.
func (r *run) stored(ctx context.Context) error {
	select {
	case <-r.queue.written():
		return context.Cause(r.ctx) // a run that was stopped gets its error also if both are true
	case <-ctx.Done():
		return ctx.Err()
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// consume moves the agent's events into the queue until the agent ends. It closes
// the queue even if the runner panics or ends its goroutine.
func (r *run) consume() {
	err := errors.New("the runner has ended its goroutine")
	defer func() { r.queue.close(err) }()
	err = r.runAgent()
}

// errPanicked is the error of a runner that panicked. The log has its panic.
var errPanicked = errors.New("the runner panicked")

func (r *run) runAgent() (err error) {
	defer func() {
		if p := recover(); p != nil {
			// Logged here, because a run that was stopped ends without the error of its agent.
			r.engine.options.Logger.Error("an agent panicked", "agent", r.agent.Name, "session", r.in.Session,
				"invocation", r.in.ID, "panic", p, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	if err := r.proceed(r.ctx); err != nil { // an agent that knows no budgets does not ask
		return err
	}
	r.events()(func(ev tapedeck.Event, failure error) bool {
		if err = failure; err != nil {
			return false
		}
		return r.take(&ev)
	})
	return err
}

// events returns the events of the agent. The invocation is large; here it is not on the
// stack for as long as the run takes.
//
//go:noinline
func (r *run) events() iter.Seq2[tapedeck.Event, error] { return r.agent.Runner.Run(r.ctx, r.in) }

// rests is [tapedeck.Inbox.Rests] of a run.
func (r *run) rests() {
	if r.settled == nil || r.rested {
		return
	}
	r.rested = true
	go func() { // once the log has what the agent did before
		if r.stored(r.ctx) == nil {
			r.settled()
		}
	}()
}

// take accepts an event of the agent. It reports false if the agent should stop.
func (r *run) take(ev *tapedeck.Event) bool {
	ev.Time = time.Time{} // the engine sets it, not the runner
	r.stamp(ev)
	return r.accept(*ev)
}

// Bounds of the retries of an append while the store is unavailable: a disk that is
// full for a moment must not end a run.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	giveUp     = 30 * time.Second
)

// append appends events of the agent. If one of them is refused, it still appends
// those before it: they show what led to the refusal.
func (r *run) append(events []tapedeck.Event) error {
	err := r.persist(events)
	if len(events) < 2 || !refused(err) {
		return err
	}
	for i := range events {
		if err := r.persist(events[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// persist appends all events or none. It retries while the store is unavailable.
func (r *run) persist(events []tapedeck.Event) error {
	if len(events) == 0 {
		return nil
	}
	for _, ev := range events {
		if ev.Invocation == r.in.ID && (strings.HasPrefix(ev.Type, "RUN_") || strings.HasPrefix(ev.Type, "session.")) {
			return tapedeck.Errorf(tapedeck.Invalid, "an agent cannot send %s", ev.Type)
		}
		if ev.Type == tapedeck.PermissionRequested {
			r.registerQuestion(&ev)
		}
	}
	begin := time.Now()
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		done, err := r.engine.write(context.Background(), tapedeck.Append{Session: r.in.Session, Events: events}, r.isOpen)
		if err == nil {
			r.noteWritten(events, done.First)
		}
		if tapedeck.KindOf(err) != tapedeck.Unavailable || time.Since(begin) > giveUp || !r.engine.sleep(pause) {
			return err
		}
	}
}

// isOpen is a guard. It refuses events after the end of the run, and events for a session that
// has its id now.
func (r *run) isOpen(s *tapedeck.Session, _ []tapedeck.Event) error {
	if s.Gen != r.gen {
		return tapedeck.Errorf(tapedeck.NotFound, "the session of run %s was deleted", r.in.ID)
	}
	if !hasRun(s, r.in.ID) {
		return tapedeck.Errorf(tapedeck.Conflict, "run %s has ended", r.in.ID)
	}
	return nil
}
