package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// An outside program appends its runs itself. Its agent has a name that no agent of the server
// has, or no name. What is for it waits until it takes it, see [Engine.Take].

// lacks reports whether an agent has a name and the server does not have it.
func (e *Engine) lacks(agent string) bool {
	_, err := e.agent(agent)
	return agent != "" && tapedeck.KindOf(err) == tapedeck.NotFound
}

// address decides for which agent a task waits, and writes its name into t: for the one that
// t names, otherwise for the one that would resume the open run, or for that of the input
// before it. outside means that an outside program takes it.
func (e *Engine) address(ctx context.Context, s *tapedeck.Session, t *api.Task, open *tapedeck.OpenRun) (outside bool, err error) {
	name := ""
	if r := e.runIn(s, open.Invocation); r != nil {
		name = r.agent.Name
	} else if open.Invocation != "" {
		if name, err = e.writerOf(ctx, s, open); err != nil {
			return false, err
		}
		outside = name == "" || e.lacks(name)
	} else if ahead := inputsIn(s, t.Thread); len(ahead) > 0 {
		last := ahead[len(ahead)-1]
		_, q, err := e.queuedEvent(ctx, s.ID, last)
		if err != nil {
			return false, err
		}
		name, outside = q.Agent, last.Outside
	}
	if t.Agent != "" && t.Agent != name {
		return e.isAway(ctx, s, t.Thread, t.Agent)
	}
	t.Agent = name
	return outside, nil
}

// isAway reports whether an agent is that of an outside program: the server lacks it, and it
// is the agent of the session, of one of the newest runs of the thread, or of an input that
// waits there.
func (e *Engine) isAway(ctx context.Context, s *tapedeck.Session, thread, agent string) (bool, error) {
	if !e.lacks(agent) {
		return false, nil
	}
	if agent == s.Agent {
		return true, nil
	}
	for _, in := range inputsIn(s, thread) {
		if !in.Outside {
			continue
		}
		if _, q, err := e.queuedEvent(ctx, s.ID, in); err != nil || q.Agent == agent {
			return err == nil, err
		}
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread})
	return slices.ContainsFunc(now.Runs, func(r view.Run) bool { return r.Agent == agent }), err
}

// writerOf returns the agent of an open run that an outside program writes. A run without a
// name has the agent of the session; "" if that has none.
func (e *Engine) writerOf(ctx context.Context, s *tapedeck.Session, open *tapedeck.OpenRun) (string, error) {
	ev, err := eventAt(ctx, e.store, s.ID, open.Offset)
	return cmp.Or(metaOf(&ev).Agent, s.Agent), err
}

// awaitsProgram is the note of an input that an outside program takes, also between its runs.
func awaitsProgram(agent string) string {
	if agent == "" {
		return notServed(agent) + ", so the input waits until that program takes it"
	}
	return notServed(agent) + ", so the input waits until a program of that name takes it"
}

// away is the error of a task for an outside program that would begin now. named means that
// the task names it.
func away(agent string, named bool) error {
	why := ", which the thread has, and the message names no agent"
	if named {
		why = ", so nothing begins here"
	}
	return tapedeck.Errorf(tapedeck.Conflict, "%s%s", notServed(agent), why).
		WithHint("name an agent of the server; with when=queue a message that names %s waits until a program of that name takes it", agent)
}

// notServed says why this server does not run a task for an agent.
func notServed(agent string) string {
	if agent == "" {
		return "an outside program writes the runs of the thread"
	}
	return "this server has no agent " + agent
}
