package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// continueText is the user's text if a run is resumed without one.
const continueText = "Continue where you left off."

// Resume starts a run that continues the newest run of a thread, with the agent of
// that run, unless r names another. That run must be interrupted, failed, or cancelled
// after the agent had begun. If the agent had not begun, Resume is [tapedeck.Invalid].
// If there is nothing to resume, it is a [tapedeck.Conflict].
//
// If the last message of the thread is one of the user that no run has got, a resume without
// a text starts a run that answers it, as a task does, and adds no message.
func (e *Engine) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	t := api.Task{Session: r.Session, Agent: r.Agent, Thread: r.Thread, Text: cmp.Or(r.Text, continueText), Config: r.Config, Actor: r.Actor, Budget: r.Budget, Capped: r.Capped, Invocation: r.Invocation}
	if err := checkTask(&t); err != nil {
		return api.Started{}, err
	}
	if err := ctx.Err(); err != nil {
		return api.Started{}, err
	}
	if err := e.notImported(t.Session); err != nil {
		return api.Started{}, err
	}
	t.Text = r.Text // without one, it depends on what the thread has
	return e.start(context.WithoutCancel(ctx), t, true)
}

// withoutText returns the task of a resume without a text: to answer the last message of the
// thread, if nobody has, and otherwise to continue. asked is that message.
func (e *Engine) withoutText(ctx context.Context, s *tapedeck.Session, t api.Task) (own api.Task, asked *view.Message, err error) {
	if asked, err = e.unanswered(ctx, s, t.Thread); asked == nil {
		t.Text = continueText
		return t, nil, err
	}
	m := payload.NewMessage(asked.ID, payload.RoleUser, asked.Text)
	if asked.Parts != nil {
		m.Content = asked.Parts
	}
	t.Text, t.Messages = asked.Text, []payload.Message{m}
	return t, asked, nil
}

// unanswered returns the last message of a thread if it is a user's and no run of the thread
// has got it: a cut has reverted its run, or a program has appended it. It returns nil for a
// run whose state is in the log, because that continues with all messages.
func (e *Engine) unanswered(ctx context.Context, s *tapedeck.Session, thread string) (*view.Message, error) {
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread, Limit: 1})
	if err != nil || len(now.Messages) == 0 {
		return nil, err
	}
	m := &now.Messages[len(now.Messages)-1]
	if m.Role != payload.RoleUser || m.Text == "" || len(now.Calls) > 0 && now.Calls[len(now.Calls)-1].Offset > m.Offset {
		return nil, nil
	}
	if len(now.Runs) > 0 {
		run := &now.Runs[len(now.Runs)-1]
		agent, err := e.agent(run.Agent)
		if run.Offset > m.Offset || run.Invocation == m.Invocation || err == nil && run.Agent != "" && isDurable(agent) {
			return nil, nil
		}
	}
	return m, nil
}

// A predecessor has what a new run must know of the run before it on its thread.
type predecessor struct {
	resumes string // its invocation, if the new run resumes it
	context string // the resume context that the agent gets
	unheard string // the part of the context that repeats the log
	lost    int    // bytes that the context leaves out
	agent   string // which ran it

	stopped *view.Run // the run, if it was cancelled, interrupted or failed; nil if no context is needed
	status  tapedeck.Status
	plan    *view.Plan    // the newest plan of the thread
	fresh   bool          // the run begins as if it were the first one on its thread, and its agent has no history
	asked   *view.Message // the task, if the thread has it already: it is given again, and not shown again
	quiet   bool          // a cut in the context of the agent has divided it: the context has only what the agent cannot know
	failed  bool          // it failed and no user asked to resume it: the context has only what the agent cannot know

	instances view.Instances // of the session; nil if it has none, or if the run makes its own

	lastLink *view.Link      // the newest link to a runner's own conversation in the thread; nil for none
	link     *tapedeck.Link  // lastLink, if the run can continue it
	prompt   *string         // a new system text, which the log does not have yet
	folder   string          // the agent's working folder
	budget   tapedeck.Amount // of the new run
}

// findPredecessor returns the predecessor of a new run on a thread. resume means that
// the new run must resume it.
func (e *Engine) findPredecessor(ctx context.Context, s *tapedeck.Session, thread string, resume bool) (predecessor, error) {
	if err := checkThreadFree(s, thread); err != nil {
		return predecessor{}, err
	}
	if !s.Status.Begun() && s.Parent == "" && !resume {
		return predecessor{}, nil // a fast path: no run can be there
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread, Limit: 1})
	if err != nil {
		return predecessor{}, err
	}
	var told *view.Link
	if len(now.Threads) > 0 {
		told = now.Threads[0].Link
	}
	if len(now.Runs) == 0 {
		return predecessor{}, nothingToResume(resume, "nothing has run on thread %s", thread)
	}
	run := &now.Runs[len(now.Runs)-1]
	f := predecessor{resumes: run.Invocation, agent: run.Agent, lastLink: told}
	switch st := outcomeOf(run); {
	case st.resumable != nil && !*st.resumable:
		return f, tapedeck.Errorf(tapedeck.Invalid, "%s was cancelled before the agent had begun, so there is nothing to resume", run.Invocation).
			WithHint("start a new session, or rewind to before %s", run.Invocation)
	case st.status == tapedeck.StatusComplete && resume:
		if other, err := e.unfinished(ctx, s, thread); err != nil {
			return predecessor{}, err
		} else if other != nil {
			return predecessor{resumes: other.Invocation, agent: other.Agent, lastLink: told}, nil
		}
		return predecessor{lastLink: told}, nothingToResume(resume, "%s has completed", run.Invocation)
	case st.status == tapedeck.StatusComplete:
		return predecessor{lastLink: told, agent: run.Agent}, nothingToResume(resume, "%s has completed", run.Invocation)
	case st.status == tapedeck.StatusFailed && !resume:
		return predecessor{lastLink: told, agent: run.Agent, stopped: run, status: st.status, plan: now.Plan, failed: true}, nil
	case run.Interrupts == nil: // with interrupts, the agent itself stopped to ask, and needs no context
		f.stopped, f.status, f.plan = run, st.status, now.Plan
		if f.quiet, err = e.isCut(ctx, s.ID, run); f.quiet && !resume {
			f.resumes = ""
		}
	}
	return f, err
}

// isCut reports whether a cut in the context of its agent has ended a run.
func (e *Engine) isCut(ctx context.Context, session string, r *view.Run) (bool, error) {
	if r.Status != tapedeck.StatusInterrupted || r.EndOffset == nil {
		return false, nil
	}
	ev, err := eventAt(ctx, e.store, session, *r.EndOffset)
	if err != nil {
		return false, err
	}
	var d struct {
		Context *view.ContextCut `json:"context"`
	}
	ended := ev.Type == tapedeck.SessionForked || ev.Type == tapedeck.SessionOverwritten
	return ended && ev.Unpack(&d) && d.Context != nil && cmp.Or(d.Context.Thread, tapedeck.MainThread) == r.Thread, nil
}

// instances returns the instances of a session, nil for one that has only begun.
func (e *Engine) instances(ctx context.Context, s *tapedeck.Session) (view.Instances, error) {
	if s.Head <= 1 && s.Parent == "" {
		return nil, nil
	}
	return e.views.Instances(ctx, s.ID, s.Head)
}

// added returns the agent of the instance that a program has added in a thread, "" if there
// is none.
func added(all view.Instances, thread string) string {
	for _, i := range all {
		if i.Main && !i.Implicit && i.Thread == cmp.Or(thread, tapedeck.MainThread) {
			return i.Name
		}
	}
	return ""
}

// instanceOf returns the id of the instance of an agent in a thread: one that the thread has,
// or that of all its runs there.
func instanceOf(all view.Instances, session, agent, thread string) string {
	id := view.AgentInstance(session, agent, thread)
	is := func(i view.Instance) bool {
		return i.Name == agent && i.Subagent == "" && i.Thread == cmp.Or(thread, tapedeck.MainThread)
	}
	if n := slices.IndexFunc(all, is); n >= 0 && !slices.ContainsFunc(all, func(i view.Instance) bool { return i.ID == id }) {
		return all[n].ID
	}
	return id
}

// chooseAgent returns the agent for a task: the one that it names, otherwise that of the
// session, that of the instance which a program has added in the thread, or the first one of
// the server. A resumed run gets the agent of that run, unless the task names another one. No
// agent answers in place of one that the server does not have: only the program that writes
// an external run resumes it, and takes what is for it.
func (e *Engine) chooseAgent(t *api.Task, s *tapedeck.Session, f *predecessor, resume bool) (*Agent, error) {
	if !resume || t.Agent != "" {
		name := cmp.Or(t.Agent, s.Agent)
		if name == "" {
			name = added(f.instances, t.Thread)
		}
		if who := cmp.Or(name, f.agent); e.lacks(who) && len(e.options.Agents) > 0 {
			return nil, away(who, t.Agent != "")
		}
		return e.agent(name)
	}
	name := cmp.Or(f.agent, s.Agent)
	switch {
	case name == "":
		return nil, notOurs("%s was not run by an agent of this server", f.resumes)
	case e.lacks(name):
		return nil, notOurs("%s was run by the agent %s, which this server does not have", f.resumes, name)
	}
	return e.agent(name)
}

func notOurs(format string, args ...any) error {
	return tapedeck.Errorf(tapedeck.Conflict, format+", so only the program that ran it can resume it", args...).
		WithHint("resume it there, or name an agent that continues in its place")
}

// nothingToResume returns an error for a resume, and nil for a task.
func nothingToResume(resume bool, format string, arg string) error {
	if !resume {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, format+", so there is nothing to resume", arg).WithHint("give the thread a task")
}
