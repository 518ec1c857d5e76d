package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

func isDurable(a *Agent) bool {
	_, ok := a.Runner.(runner.Durable)
	return ok
}

// prepareOpening asks the runner for the events that begin the run.
func (r *run) prepareOpening(ctx context.Context) (err error) {
	if o, ok := r.agent.Runner.(runner.Opening); ok {
		r.own, err = o.Opening(ctx, r.in)
	}
	return err
}

// limits returns the time limits of the run. A durable run has only one that is set for
// its agent.
func (r *run) limits() (run, idle time.Duration) {
	if r.durable {
		return r.agent.RunTimeout, 0
	}
	o := &r.engine.options
	return limit(r.agent.RunTimeout, o.RunTimeout), limit(r.agent.IdleTimeout, o.IdleTimeout)
}

// staysOpen reports whether the run is left open, because the server stops and its next
// start continues it.
func (r *run) staysOpen() bool {
	return r.durable && r.from.run == nil && errors.Is(context.Cause(r.ctx), errShutdown)
}

// message returns why a run failed, in words for people; "" if it did not.
func (t *terminal) message() string {
	d, err := payload.DecodeAs[payload.RunError](t.event)
	if err != nil {
		return "" // it is no RUN_ERROR
	}
	return d.Message
}

// durableAgent returns the agent of a run whose state is in the log.
func (e *Engine) durableAgent(started *tapedeck.Event) (*Agent, bool) {
	agent, ok := e.agentOf(started)
	if !ok || !isDurable(agent) || agent.Available() != nil {
		return nil, false
	}
	return agent, true
}

// continueRun drives a durable run that an earlier process left open. It ends the runs
// that this one started; their tasks are delegated again, on the same threads.
func (e *Engine) continueRun(ctx context.Context, s *tapedeck.Session, open *tapedeck.OpenRun, started *tapedeck.Event, agent *Agent, kill bool) (bool, error) {
	runs := withDescendants(s.Runs, *open)
	t, err := trailOf(ctx, e.store, s.ID, runs)
	if err != nil {
		return false, err
	}
	if kill {
		e.killLeftovers(s.ID, *open, &t)
	}
	first, found, err := e.views.FindInvocation(ctx, s.ID, open.Invocation)
	if err != nil || !found {
		return false, err
	}
	if err := e.endChildren(ctx, s.ID, runs, &t); err != nil {
		return false, err
	}
	all, err := e.instances(ctx, s)
	if err != nil {
		return false, err
	}
	meta := metaOf(started)
	r := newRun(e, agent, api.Task{Session: s.ID, Thread: open.Thread}, predecessor{resumes: meta.Resumes, context: meta.Context, instances: all})
	r.gen = s.Gen
	r.in.ID, r.offset, r.heard, r.owner = open.Invocation, first, first, open.Owner
	r.queue.begun = true
	r.askAgain(&t)
	r.settled = e.trial.watch(s.ID)
	if err := e.register(r); err != nil {
		return false, err
	}
	err = e.closeItems(ctx, s.ID, open)
	if err == nil {
		var now tapedeck.Session
		now, err = e.session(ctx, s.ID)
		r.upTo = now.Head
	}
	if err != nil {
		e.unregister(r)
		return false, err
	}
	go r.drive()
	return true, nil
}

// endChildren ends the runs that the first one of runs started, and answers their
// questions as cancelled.
func (e *Engine) endChildren(ctx context.Context, session string, runs []tapedeck.OpenRun, t *trail) error {
	var answers []tapedeck.Event
	own := t.order
	t.order = slices.DeleteFunc(slices.Clone(own), func(id string) bool {
		ev := t.open[id]
		m := metaOf(&ev)
		return m.Invocation == "" && ev.Invocation == runs[0].Invocation
	})
	answers = t.cancelAnswers() // removes them from t.open
	t.order = own
	if len(answers) > 0 {
		if _, err := e.write(ctx, tapedeck.Append{Session: session, Events: answers}, nil); err != nil {
			return err
		}
	}
	end := errorEnd(tapedeck.CodeInterrupted, "the server was restarted while the agent was running", tapedeck.StatusInterrupted)
	for i := range runs[1:] {
		if r := &runs[1+i]; r.Parent == runs[0].Invocation {
			if done := e.finish(ctx, session, r.Invocation, end, nil); done.err != nil && !isOver(done.err) {
				return done.err
			}
		}
	}
	return nil
}

// askAgain registers the pending questions of the run, which people can answer from now
// on.
func (r *run) askAgain(t *trail) {
	for _, id := range t.order {
		ev, pending := t.open[id]
		if !pending {
			continue
		}
		var d tapedeck.Question
		if !ev.Unpack(&d) {
			continue
		}
		q := newQuestion(r, d)
		q.posted, q.offset = true, ev.Offset
		close(q.asked)
		r.questions.register(q)
	}
}

// maxSearched is how many runs of a thread a resume looks at.
const maxSearched = 200

// unfinished returns the newest run of a durable agent on a thread, if it did not
// complete; nil if there is none. Other runs after it do not keep it from continuing:
// its state is in the log.
func (e *Engine) unfinished(ctx context.Context, s *tapedeck.Session, thread string) (*view.Run, error) {
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread, Runs: true, Limit: maxSearched})
	if err != nil {
		return nil, err
	}
	for _, run := range slices.Backward(now.Runs) {
		agent, err := e.agent(run.Agent)
		if run.Agent == "" || err != nil || !isDurable(agent) {
			continue
		}
		if st := outcomeOf(&run); st.status == tapedeck.StatusComplete || st.resumable != nil && !*st.resumable {
			return nil, nil
		}
		return &run, nil
	}
	return nil, nil
}

// openDurable returns the run of a workflow that gets a message: the one on the thread,
// or the only one.
func (e *Engine) openDurable(session, thread string) (found *run, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.in.Session != session || !r.durable || thread != "" && thread != r.in.Thread {
			continue
		}
		if found != nil {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "several workflows are running in session %s", session).
				WithHint("name the thread of one: %s or %s", found.in.Thread, r.in.Thread)
		}
		found = r
	}
	if found == nil {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "no workflow is running in session %s%s", session, onThread(thread)).
			WithHint("a message needs a workflow that can wait for it; resume the workflow if it was stopped")
	}
	return found, nil
}

func onThread(thread string) string {
	if thread == "" {
		return ""
	}
	return " on thread " + thread
}

// SendMessage sends a message to a workflow that runs. The message is in the log when
// SendMessage returns; the workflow takes it as soon as an element waits for it. If no
// workflow runs, it is a [tapedeck.Conflict]; if too many messages wait, it is
// [tapedeck.Limited].
func (e *Engine) SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error) {
	if err := cmp.Or(checkOptional("the thread", m.Thread), checkMessageName("name", m.Name), checkCorrelation(m.Correlation)); err != nil {
		return api.MessageSent{}, err
	}
	size := membersSize(m.Variables)
	if size > maxMessageSize {
		return api.MessageSent{}, tapedeck.Errorf(tapedeck.TooLarge, "the variables of the message have %d bytes; at most %d are allowed", size, maxMessageSize)
	}
	for name, value := range m.Variables {
		if jsonobj.Nesting(value) > maxNesting {
			return api.MessageSent{}, tapedeck.Errorf(tapedeck.Invalid, "the variable %.100q of the message is nested more than %d deep", name, maxNesting)
		}
	}
	if _, err := e.session(ctx, m.Session); err != nil {
		return api.MessageSent{}, err
	}
	r, err := e.openDurable(m.Session, m.Thread)
	if err != nil {
		return api.MessageSent{}, err
	}
	if err := e.admitMessage(ctx, r, &m, size); err != nil {
		return api.MessageSent{}, err
	}
	ev := payload.NewEvent(payload.WorkflowMessage{Name: m.Name, Correlation: m.Key(), Variables: m.Variables})
	r.stamp(&ev)
	ev.Actor, ev.Instance = m.Actor, ""
	done, err := e.write(context.WithoutCancel(ctx), tapedeck.Append{Session: m.Session, Events: []tapedeck.Event{ev}}, r.isOpen)
	if err != nil {
		r.inbox.release(size)
		return api.MessageSent{}, err
	}
	ev.Offset = done.First
	r.inbox.put(ev)
	return api.MessageSent{Invocation: r.in.ID, Offset: done.First}, nil
}

// admitMessage counts a message that waits in a run, or refuses it.
func (e *Engine) admitMessage(ctx context.Context, r *run, m *api.SendMessage, size int) error {
	if r.inbox.admit(size) {
		return nil
	}
	switch awaited, err := e.isAwaited(ctx, r, m); {
	case err != nil:
		return err
	case awaited:
		r.inbox.count(size)
		return nil
	}
	return tapedeck.Errorf(tapedeck.Limited, "too many messages wait in the workflow, and no element has received them: at most %d, with variables of %d bytes, may wait", maxUnread, maxUnreadBytes).
		WithHint("wait until the workflow receives some of them; a message that an element waits for now is accepted")
}

// isAwaited reports whether an element waits for a message now. Such a message is accepted
// although too many wait: it is received at once, and other messages must not block it.
func (e *Engine) isAwaited(ctx context.Context, r *run, m *api.SendMessage) (bool, error) {
	w, err := e.views.Workflow(ctx, m.Session, r.in.Thread, -1)
	if w == nil || err != nil {
		return false, err
	}
	fits := func(wait view.WorkflowWait) bool {
		return wait.For == "message" && wait.Message == m.Name && (wait.Correlation == "" || m.Correlation == nil || wait.Correlation == *m.Correlation)
	}
	return slices.ContainsFunc(w.Waits, fits) ||
		slices.ContainsFunc(w.Activations, func(a view.WorkflowActivation) bool { return slices.ContainsFunc(a.Waits, fits) }), nil
}

// maxName is the longest name of a message, in bytes, and maxMessageSize the largest size of its
// variables.
const (
	maxName        = 512
	maxMessageSize = 1 << 20
)

// maxNesting is how deep the variables of a message are nested at most: as deep as those of a
// workflow, so that an element which takes them does not fail.
const maxNesting = jsonobj.MaxNesting - 10

// checkCorrelation refuses an empty text: it would fit every element, as none does, and the
// program that sends it means a key that it has lost.
func checkCorrelation(key *string) error {
	switch {
	case key == nil:
		return nil
	case *key == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the correlation of the message is an empty text, which no element waits for").
			WithHint("leave correlation out if every element that waits for the name may receive the message")
	}
	return checkMessageName("correlation", *key)
}

func checkMessageName(what, text string) error {
	switch {
	case text == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the message has no %s", what).WithHint("give the name that the workflow waits for")
	case len(text) > maxName:
		return tapedeck.Errorf(tapedeck.Invalid, "the %s of the message has %d bytes; at most %d are allowed", what, len(text), maxName)
	}
	return nil
}
