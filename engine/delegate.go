package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

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
	first   int64         // its first event; 0 as long as the log has none
	mu      sync.Mutex    // the run may end while its agent is still speaking
	text    strings.Builder
	maxText int
	fresh   bool // see predecessor
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
	if d.Thread != "" {
		return r.delegateOn(ctx, &d)
	}
	d.Thread = tapedeck.NewID(payload.SubThreadPrefix)
	child, err := r.newChild(ctx, &d, &predecessor{})
	if err != nil {
		return tapedeck.Delegated{}, err
	}
	return r.await(ctx, &d, child)
}

// await begins a child run and waits for its end.
func (r *run) await(ctx context.Context, d *tapedeck.Delegation, child *run) (tapedeck.Delegated, error) {
	defer context.AfterFunc(ctx, func() { child.stop(context.Cause(ctx)) })()
	r.questions.addWaiting(1) // an agent that waits for another one is not idle
	defer r.queue.nudge()
	defer r.questions.addWaiting(-1)
	if !r.pushAll(child.childOpening(d)) || !child.waitStarted() {
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
	return tapedeck.Delegated{
		Text: child.from.said(), Status: child.result.status, Thread: child.in.Thread, Invocation: child.in.ID, Message: child.failure,
	}, nil
}

// newChild returns a run of another agent, which this run starts. f says what came
// before it on its thread.
func (r *run) newChild(ctx context.Context, d *tapedeck.Delegation, f *predecessor) (*run, error) {
	if !slices.Contains(r.agent.Starts, d.Agent) {
		return nil, tapedeck.Errorf(tapedeck.Forbidden, "the agent %s may not start the agent %.100q", r.agent.Name, d.Agent)
	}
	e := r.engine
	t := api.Task{Session: r.in.Session, Text: d.Task, Agent: d.Agent, Thread: d.Thread, Config: d.Config, Actor: r.actor()}
	if f.asked != nil {
		t.Text, t.MessageID = f.asked.Text, f.asked.ID
	}
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
	if err := e.prepare(ctx, &s, t.Thread, agent, d.Config, f); err != nil {
		return nil, err
	}
	f.budget = agent.Budget
	child := newRun(e, agent, t, *f)
	child.from.run, child.from.depth, child.from.started = r, r.from.depth+1, make(chan struct{})
	child.from.maxText, child.from.fresh = maxChildText, f.fresh
	child.owner = r.owner
	child.in.Delegates = e.delegates(agent, child.from.depth)
	if len(child.in.Delegates) == 0 {
		child.in.Delegate = nil
	}
	child.gen, child.heard = s.Gen, s.Head // heard is for its opening; childStarted corrects it
	if err := child.prepareOpening(ctx); err != nil {
		return nil, err
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
	if r.in.Resumes != "" {
		return append([]tapedeck.Event{begun}, r.opening(api.Task{Text: d.Task, Actor: parent.actor()})...)
	}
	return append([]tapedeck.Event{begun, instance}, r.opening(api.Task{Text: d.Task, Actor: parent.actor()})...)
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

// childStarted tells a child run that its RUN_STARTED is in the log. Its first event,
// which says where its history ends, may be in an earlier append.
func (r *run) childStarted(ev *tapedeck.Event, offset int64) {
	child := r.childOf(ev)
	if child == nil {
		return
	}
	child.offset, child.upTo = cmp.Or(child.from.first, offset), offset+1
	child.heard = child.offset
	if child.from.fresh {
		child.heard = 0
	}
	close(child.from.started)
}

// childBegins notes the first event of a child run.
func (r *run) childBegins(ev *tapedeck.Event, offset int64) {
	if child := r.childOf(ev); child != nil && child.from.first == 0 {
		child.from.first = offset
	}
}

// childOf returns the child run to which an event belongs, nil if it is of no child.
func (r *run) childOf(ev *tapedeck.Event) *run {
	if ev.Invocation == r.in.ID {
		return nil
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if child := r.engine.runs[ev.Invocation]; child != nil && child.from.run == r {
		return child
	}
	return nil
}

// captureText keeps the agent's last message for the parent run.
func (r *run) captureText(ev *tapedeck.Event) {
	if r.from.run == nil {
		return
	}
	r.from.mu.Lock()
	defer r.from.mu.Unlock()
	switch ev.Type {
	case tapedeck.TextMessageStart:
		r.from.text.Reset()
	case tapedeck.TextMessageContent:
		if r.from.text.Len() < r.from.maxText {
			r.from.text.WriteString(string(jsonobj.PieceOf(jsonobj.Member(ev.Data, "delta"))))
		}
	}
}

// said returns the text that was captured.
func (p *parentage) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return jsonobj.Whole(p.text.String())
}

// root returns the run that a user started. Questions to people are asked there.
func (r *run) root() *run {
	for r.from.run != nil {
		r = r.from.run
	}
	return r
}
