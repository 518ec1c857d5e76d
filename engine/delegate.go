package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// maxDepth is how deep runs that start other runs can be nested.
const maxDepth = 4

// maxChildText is the largest number of bytes of a child run's answer that its
// parent gets.
const maxChildText = 256 << 10

// A parentage connects a run with the run that started it.
type parentage struct {
	run     *run // nil for a run that a user started
	depth   int
	started chan struct{} // closed when the beginning of this run is in the log
	text    strings.Builder
}

// delegates returns the agents that a run of an agent at a depth may start.
func (e *Engine) delegates(agent *Agent, depth int) (out []tapedeck.Agent) {
	if depth >= maxDepth || len(agent.Starts) == 0 {
		return nil
	}
	for _, a := range e.Agents() {
		if slices.Contains(agent.Starts, a.Name) {
			out = append(out, a)
		}
	}
	return out
}

// delegate is [tapedeck.Invocation.Delegate] of a run. The first events of the child
// go through the queue of this run, after the tool call that led to it. From then on
// the child is a run like any other, except that it ends with this run.
func (r *run) delegate(ctx context.Context, d tapedeck.Delegation) (tapedeck.Delegated, error) {
	child, err := r.newChild(ctx, &d)
	if err != nil {
		return tapedeck.Delegated{}, err
	}
	defer context.AfterFunc(ctx, func() { child.stop(context.Cause(ctx)) })()
	r.questions.addWaiting(1) // an agent that waits for another one is not idle
	defer r.queue.notify()
	defer r.questions.addWaiting(-1)
	if !r.pushAll(child.childOpening(&d)) || !child.waitStarted() {
		r.engine.unregister(child) // if the log has its beginning after all, the end of this run ends it
		return tapedeck.Delegated{}, tapedeck.Errorf(tapedeck.Unavailable, "the run has ended")
	}
	go child.drive()
	<-child.done
	end := payload.NewEvent(payload.SubagentFinished{SubagentRunID: child.in.ID})
	if s := child.result.status; s != tapedeck.StatusComplete {
		end = payload.NewEvent(payload.SubagentError{SubagentRunID: child.in.ID, Message: "the agent " + d.Agent + " did not finish: " + string(s)})
	}
	r.stamp(&end)
	r.queue.push(end)
	return tapedeck.Delegated{Text: child.from.text.String(), Status: child.result.status, Thread: child.in.Thread}, nil
}

// newChild returns a run of another agent, which this run starts.
func (r *run) newChild(ctx context.Context, d *tapedeck.Delegation) (*run, error) {
	if !slices.ContainsFunc(r.in.Delegates, func(a tapedeck.Agent) bool { return a.Name == d.Agent }) {
		return nil, tapedeck.Errorf(tapedeck.Forbidden, "%s may not start the agent %.100q", r.agent.Name, d.Agent)
	}
	e := r.engine
	t := api.Task{Session: r.in.Session, Text: d.Task, Agent: d.Agent, Thread: tapedeck.NewID(payload.SubThreadPrefix), Actor: "agent:" + r.agent.Name}
	agent, err := e.agent(d.Agent)
	if err == nil && strings.TrimSpace(t.Text) == "" {
		err = tapedeck.Errorf(tapedeck.Invalid, "the task is empty")
	}
	if err != nil {
		return nil, err
	}
	s, err := e.session(ctx, r.in.Session)
	if err != nil {
		return nil, err
	}
	var f predecessor
	if err := e.prepare(ctx, &s, t.Thread, &agent, nil, &f); err != nil {
		return nil, err
	}
	child := newRun(e, agent, t, f)
	child.from = parentage{run: r, depth: r.from.depth + 1, started: make(chan struct{})}
	child.in.Delegates = e.delegates(&agent, child.from.depth)
	if len(child.in.Delegates) == 0 {
		child.in.Delegate = nil
	}
	child.ctx, child.stop = context.WithCancelCause(r.ctx)
	return child, e.register(child)
}

// childOpening returns the events that begin this run, which another run started.
func (r *run) childOpening(d *tapedeck.Delegation) []tapedeck.Event {
	parent := r.from.run
	begun := payload.NewEvent(payload.SubagentStarted{
		SubagentRunID: r.in.ID, Name: r.agent.Name, ParentToolCallID: d.ToolCallID,
		Common: payload.Common{Metadata: tapedeck.Meta{Thread: r.in.Thread, Invocation: r.in.ID}.In(nil)},
	})
	parent.stamp(&begun)
	instance := payload.NewEvent(payload.InstanceStarted{ID: r.instance, Name: r.agent.Name, Parent: parent.instance})
	r.stamp(&instance)
	return append([]tapedeck.Event{begun, instance}, r.opening(api.Task{Text: d.Task, Actor: "agent:" + parent.agent.Name})...)
}

// waitStarted waits until the log has the beginning of the run. It reports false if
// the parent run is stopped before.
func (r *run) waitStarted() bool {
	select {
	case <-r.from.started:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// childStarted tells a child run that its RUN_STARTED is in the log.
func (r *run) childStarted(ev *tapedeck.Event, offset int64) {
	r.engine.mu.Lock()
	child := r.engine.runs[ev.Invocation]
	r.engine.mu.Unlock()
	if child != nil && child.from.run == r {
		child.offset, child.heard = offset, offset
		close(child.from.started)
	}
}

// captureText keeps the agent's last message for the parent run.
func (r *run) captureText(ev *tapedeck.Event) {
	switch {
	case r.from.run == nil:
	case ev.Type == tapedeck.TextMessageStart:
		r.from.text.Reset()
	case ev.Type == tapedeck.TextMessageContent:
		if r.from.text.Len() < maxChildText {
			r.from.text.WriteString(jsonobj.StringOf(jsonobj.Member(ev.Data, "delta")))
		}
	}
}

// root returns the run that a user started. Questions to people are asked there.
func (r *run) root() *run {
	for r.from.run != nil {
		r = r.from.run
	}
	return r
}
