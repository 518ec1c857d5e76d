package workflow

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
	"github.com/tapedeck/tapedeck/view"
)

// tasks are the tasks of agents: those that work, each in a goroutine of its own that
// only waits for the agent, and those that wait for their turn.
type tasks struct {
	w       *walker
	running map[string]context.CancelFunc // by activation
	queue   []string                      // activations
	queued  map[string]bool
	done    chan *taskDone
	all     sync.WaitGroup
}

// A taskDone is the end of a task.
type taskDone struct {
	activation string
	result     tapedeck.Delegated
	err        error
}

func newTasks(w *walker) *tasks {
	return &tasks{w: w, running: map[string]context.CancelFunc{}, queued: map[string]bool{}, done: make(chan *taskDone)}
}

// want queues the task of an activation.
func (t *tasks) want(activation string) {
	if t.running[activation] == nil && !t.queued[activation] {
		t.queued[activation] = true
		t.queue = append(t.queue, activation)
	}
}

// start starts queued tasks, as far as the limit allows. A task that cannot begin fails, and
// is looked at next.
func (t *tasks) start() {
	for len(t.queue) > 0 && len(t.running) < t.w.r.options.MaxTasks && !t.w.stopped() {
		id := t.queue[0]
		t.queue = t.queue[1:]
		delete(t.queued, id)
		if a := t.w.fold.Open(id); a != nil && a.Status != view.ActivationFailed {
			t.run(t.w.node(a), a)
		}
	}
}

// run starts the agent of an activation.
func (t *tasks) run(n *bpmn.Node, a *view.WorkflowActivation) {
	w, agent := t.w, n.AgentFor(t.w.fold.Head().Agents)
	prompt, err := n.Agent.Prompt.Render(w.ctx, w.env(a.ID))
	if err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	if w.in.Delegate == nil {
		w.failWith(a.ID, codeAgent, errNoAgents)
		return
	}
	if !waits(a, n.ID) {
		w.emit(payload.WorkflowWaiting{WorkflowElement: elementOf(n), Activation: a.ID, For: "agent", Agent: agent})
	}
	ctx, cancel := context.WithCancel(w.ctx)
	t.running[a.ID] = cancel
	d := tapedeck.Delegation{Agent: agent, Task: prompt, Thread: a.Thread, Since: w.fold.Head().Offset}
	id, delegate := a.ID, w.in.Delegate
	t.all.Go(func() {
		out, err := delegate(ctx, d)
		select {
		case t.done <- &taskDone{id, out, err}:
		case <-w.ctx.Done():
		case <-ctx.Done():
		}
	})
}

// sweep stops the tasks whose activations have ended.
func (t *tasks) sweep() {
	for id, cancel := range t.running {
		if t.w.fold.Open(id) == nil {
			cancel()
			delete(t.running, id)
		}
	}
}

// end stops all tasks and waits for them.
func (t *tasks) end() {
	for _, cancel := range t.running {
		cancel()
	}
	t.all.Wait()
}

// taskEnded takes the result of an agent.
func (w *walker) taskEnded(d *taskDone) {
	if cancel := w.tasks.running[d.activation]; cancel != nil {
		cancel()
		delete(w.tasks.running, d.activation)
	}
	a := w.fold.Open(d.activation)
	if a == nil || w.stopped() {
		return
	}
	n := w.node(a)
	switch status := d.result.Status; {
	case d.err != nil:
		w.failWith(a.ID, codeAgent, taskError(d.err))
	case status == tapedeck.StatusComplete:
		w.taskComplete(n, a, d.result.Text)
	case status == tapedeck.StatusCancelled:
		w.fail(a.ID, codeCancelled, "the task was cancelled")
	case status == tapedeck.StatusInterrupted: // the server stops, and this run continues after its start
	default:
		message := d.result.Message
		if message == "" {
			message = "the agent did not finish"
		}
		w.fail(a.ID, codeAgent, message)
	}
}

// taskError returns an error in words for users.
func taskError(err error) error {
	var e *tapedeck.Error
	if errors.As(err, &e) {
		return err
	}
	return errors.New("the agent could not be started")
}

// taskComplete ends a task with the answer of its agent. An answer that nothing takes may
// have any length and any form.
func (w *walker) taskComplete(n *bpmn.Node, a *view.WorkflowActivation, text string) {
	set := map[string]any{}
	if n.Agent.ResultAs == bpmn.AsJSON || takesResult(n) {
		v, err := n.Agent.Result(text)
		if err != nil {
			w.failWith(a.ID, codeOutput, err)
			return
		}
		if n.Agent.Output != "" {
			set[n.Agent.Output] = v
		}
		if len(n.Outputs) > 0 || n.Loop != nil && n.Loop.OutputElement != nil {
			set[bpmn.ResultVariable] = v
		}
	}
	w.leave(n, a, set)
}

// takesResult reports whether a variable gets the answer of an agent, or is made of it.
func takesResult(n *bpmn.Node) bool {
	uses := func(v *expression.Value) bool { return slices.Contains(v.Variables(), bpmn.ResultVariable) }
	return n.Agent.Output != "" || n.Loop != nil && n.Loop.OutputElement != nil && uses(n.Loop.OutputElement) ||
		slices.ContainsFunc(n.Outputs, func(m bpmn.Mapping) bool { return uses(m.Source) })
}
