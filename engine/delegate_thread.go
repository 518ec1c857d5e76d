package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxNamedText is the largest number of bytes of a child run's answer on a named thread.
// The byte beyond 1 MiB tells a caller that allows 1 MiB that the answer is longer.
const maxNamedText = 1<<20 + 1

// errReverted is the cause with which a jump stops a run that another run has started on
// a named thread: that run starts it again after the jump.
var errReverted = errors.New("its thread is reverted")

// delegateOn is a delegation with a named thread: it happens once. If a jump reverts
// the thread meanwhile, it happens again.
func (r *run) delegateOn(ctx context.Context, d *tapedeck.Delegation) (tapedeck.Delegated, error) {
	if err := tapedeck.CheckID("the thread", d.Thread); err != nil {
		return tapedeck.Delegated{}, err
	}
	for {
		if err := r.engine.awaitJumps(ctx, r.in.Session); err != nil {
			return tapedeck.Delegated{}, err
		}
		f, done, err := r.engine.delegatedBefore(ctx, r.in.Session, d, r.actor())
		if err != nil || done != nil {
			if done != nil {
				return *done, nil
			}
			return tapedeck.Delegated{}, err
		}
		child, err := r.newChild(ctx, d, &f)
		if err != nil {
			return tapedeck.Delegated{}, err
		}
		child.from.maxText = maxNamedText
		out, err := r.await(ctx, d, child)
		if err != nil || !errors.Is(context.Cause(child.ctx), errReverted) {
			return out, err
		}
	}
}

// delegatedBefore returns the outcome of the newest run of a delegation, if it ended by
// itself, and otherwise what the run that does the task now must know. A task that was
// stopped is done from its beginning, with the prompt that the log has: the agent answers
// as it would have answered before. Only a run that a jump has cut is continued, because
// somebody has chosen what its agent still knows; so is one that waits for an answer, and
// one whose state is in the log. actor is the agent that gives the task.
func (e *Engine) delegatedBefore(ctx context.Context, session string, d *tapedeck.Delegation, actor string) (f predecessor, done *tapedeck.Delegated, err error) {
	s, err := e.session(ctx, session)
	if err != nil {
		return f, nil, err
	}
	if err := checkThreadFree(&s, d.Thread); err != nil {
		return f, nil, err
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: d.Thread})
	if err != nil {
		return f, nil, err
	}
	used := len(now.Runs) > 0
	now.Runs = slices.DeleteFunc(slices.Clone(now.Runs), func(r view.Run) bool { return r.Offset < d.Since })
	again := predecessor{asked: askedBy(&now, actor, d.Since)}
	again.fresh = again.asked != nil || used
	if len(now.Runs) == 0 {
		return again, nil, nil
	}
	last := &now.Runs[len(now.Runs)-1]
	switch st := outcomeOf(last); {
	case st.status == tapedeck.StatusComplete:
		return f, &tapedeck.Delegated{Thread: d.Thread, Status: st.status, Text: lastText(&now, last.Invocation), Invocation: last.Invocation}, nil
	case st.status == tapedeck.StatusFailed && !abandoned(last):
		out := &tapedeck.Delegated{Thread: d.Thread, Status: st.status, Invocation: last.Invocation}
		if last.Error != nil {
			out.Message = last.Error.Message
		}
		return f, out, nil
	}
	agent, err := e.agent(last.Agent)
	durable := err == nil && isDurable(agent)
	if err != nil || !canResume(last) || !durable && last.EndOffset != nil && last.Interrupts == nil {
		return again, nil, nil //nolint:nilerr // another agent does the task if the server does not have that one any more
	}
	if f, err = e.findPredecessor(ctx, &s, d.Thread, false); err != nil {
		return f, nil, err
	}
	if durable {
		f.stopped, f.asked = nil, again.asked
		return f, nil, nil
	}
	return f, nil, e.addResumeContext(ctx, &s, agent, &f)
}

// abandoned reports whether a run failed only because the run that started it had ended, or had
// stopped it. Its task is not done.
func abandoned(r *view.Run) bool { return r.Error != nil && r.Error.Code == payload.CodeRunEnded }

// askedBy returns the prompt that an actor has given to a thread since an offset, nil if
// there is none.
func askedBy(s *view.Snapshot, actor string, since int64) *view.Message {
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Offset >= since && m.Role == payload.RoleUser && m.Actor == actor && m.Text != "" { // an erased one has no text
			return m
		}
	}
	return nil
}

// lastText returns the last message of the agent in a run.
func lastText(s *view.Snapshot, invocation string) string {
	for _, m := range slices.Backward(s.Messages) {
		if m.Invocation == invocation && m.Role == payload.RoleAssistant {
			text := m.Text
			return text[:min(len(text), maxNamedText)]
		}
	}
	return ""
}

// A jumpGate is open while no jump is in progress in a session.
type jumpGate struct {
	jumps int
	open  chan struct{} // closed with the end of the last jump
}

// beginJump notes a jump in a session until the returned function is called.
func (e *Engine) beginJump(session string) (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.jumping[session]
	if g == nil {
		g = &jumpGate{open: make(chan struct{})}
		e.jumping[session] = g
	}
	g.jumps++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if g.jumps--; g.jumps == 0 {
			delete(e.jumping, session)
			close(g.open)
		}
	}
}

// awaitJumps waits until no jump is in progress in a session.
func (e *Engine) awaitJumps(ctx context.Context, session string) error {
	for {
		e.mu.Lock()
		g := e.jumping[session]
		e.mu.Unlock()
		if g == nil {
			return ctx.Err()
		}
		select {
		case <-g.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
