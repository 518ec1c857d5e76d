package engine

import (
	"cmp"
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// continueText is what the user says who resumes a run without a word.
const continueText = "Continue where you left off."

// Resume starts a run that goes on where the newest one of a thread was cut
// short, with the same agent. That must have been cancelled after the agent had
// begun, or interrupted, or have failed; else it is a [tapedeck.Conflict], and
// [tapedeck.Invalid] if it was cancelled before that.
func (e *Engine) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	if r.Text == "" {
		r.Text = continueText
	}
	t := api.Task{Session: r.Session, Agent: r.Agent, Thread: r.Thread, Text: r.Text, Config: r.Config, Actor: r.Actor}
	if err := checkTask(&t); err != nil {
		return api.Started{}, err
	}
	if err := ctx.Err(); err != nil {
		return api.Started{}, err
	}
	return e.start(context.WithoutCancel(ctx), t, true)
}

// A following is what a run has to do with the one before it on its thread.
type predecessor struct {
	resumes string // its invocation, if it was cut short
	context string // what the agent is told of it
	unheard string // the part of it that the log has, too
	lost    int    // how many bytes the context leaves out
	agent   string // which it was

	stopped *view.Run // the run that was cut short; nil if there is nothing to tell of it
	status  tapedeck.Status
	plan    *view.Plan // the newest of the thread
	failed  bool       // it has failed and nobody has asked to resume it: the agent is told only what it cannot know

	lastLink *view.Link     // the newest conversation of a runner's own in the thread; nil for none
	link     *tapedeck.Link // if the run can go on with it
	prompt   *string        // the system text of its model, if the log does not have it yet
	folder   string         // where it works
}

// follow finds out what a run that is to begin on a thread follows. resume says
// that it is to go on with that.
func (e *Engine) findPredecessor(ctx context.Context, s *tapedeck.Session, thread string, resume bool) (predecessor, error) {
	if err := checkThreadFree(s, thread); err != nil {
		return predecessor{}, err
	}
	if !s.Status.Begun() && s.Parent == "" && !resume {
		return predecessor{}, nil // there is nothing to look for
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Thread: thread, Limit: 1})
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
		return f, tapedeck.Errorf(tapedeck.Invalid, "%s was cancelled before the agent had begun, so there is nothing to go on from", run.Invocation).
			WithHint("start a new session, or rewind to before %s", run.Invocation)
	case st.status == tapedeck.StatusComplete:
		return predecessor{lastLink: told}, nothingToResume(resume, "%s has come to its end", run.Invocation)
	case st.status == tapedeck.StatusFailed && !resume:
		return predecessor{lastLink: told, stopped: run, status: st.status, plan: now.Plan, failed: true}, nil
	case run.Interrupts == nil: // else the agent has asked something, and knows why it stopped
		f.stopped, f.status, f.plan = run, st.status, now.Plan
	}
	return f, nil
}

// choose returns the agent that a task goes to. One that resumes a run goes to the
// agent of that run, unless it names another. Only the program that writes a run
// from outside can resume it.
func (e *Engine) chooseAgent(t *api.Task, s *tapedeck.Session, f *predecessor, resume bool) (Agent, error) {
	if !resume || t.Agent != "" {
		return e.agent(cmp.Or(t.Agent, s.Agent))
	}
	name := cmp.Or(f.agent, s.Agent)
	if name == "" {
		return Agent{}, notOurs("%s was not run by an agent of this server", f.resumes)
	}
	agent, err := e.agent(name)
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return Agent{}, notOurs("%s was run by the agent %s, which this server does not have", f.resumes, name)
	}
	return agent, err
}

func notOurs(format string, args ...any) error {
	return tapedeck.Errorf(tapedeck.Conflict, format+", so only the program that ran it can resume it", args...).
		WithHint("resume it there, or name the agent that is to go on in its place")
}

// nothingToResume is no error for a task, which need not resume anything.
func nothingToResume(resume bool, format string, arg string) error {
	if !resume {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, format+", so there is nothing to resume", arg).WithHint("give the thread a task")
}
