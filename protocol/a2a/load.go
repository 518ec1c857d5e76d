package a2a

import (
	"cmp"
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// load folds a task from the events that are active as of offset at, -1 for the head of
// the session. A task that did not exist then, that was reverted, or that another agent
// runs, is not found.
func (c *call) load(ctx context.Context, r ref, at int64) (*fold, error) {
	s, err := c.Sessions.Head(ctx, r.session)
	if err != nil {
		return nil, notThere(err, r.id())
	}
	if s.Kind != tapedeck.KindSession {
		return nil, noTask(r.id())
	}
	if at < 0 {
		at = s.Head
	}
	if r.invocation == "" {
		return c.loadSession(ctx, r, &s, at)
	}
	first, found, err := c.Views.FindInvocation(ctx, r.session, r.invocation)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return c.loadRewound(ctx, r, &s)
	case first >= at:
		return nil, noTask(r.id())
	}
	f, err := c.fold(ctx, r, first, at)
	if err != nil {
		return nil, err
	}
	// Without the first event, the task was reverted. That event may be erased.
	if !f.begun && len(f.history) == 0 && f.started == 0 || !c.sees(f.agent) {
		return nil, noTask(r.id())
	}
	return f, c.cutOff(ctx, f, &s, at)
}

// loadKnown folds a task also if a rewind has reverted it: then as it was before the first
// jump after its beginning.
func (c *call) loadKnown(ctx context.Context, r ref, at int64) (*fold, error) {
	f, err := c.load(ctx, r, at)
	if tapedeck.KindOf(err) != tapedeck.NotFound || r.invocation == "" {
		return f, err
	}
	first, found, other := c.Views.FindInvocation(ctx, r.session, r.invocation)
	if other != nil || !found {
		return nil, cmp.Or(other, err)
	}
	t, other := c.Views.Timeline(ctx, r.session, at)
	if other != nil {
		return nil, other
	}
	for _, j := range t.Jumps() {
		if j.Offset > first && !j.Attempt {
			return c.load(ctx, r, j.Offset)
		}
	}
	return nil, err
}

// loadSession folds the task of a session, which may have no message yet.
func (c *call) loadSession(ctx context.Context, r ref, s *tapedeck.Session, at int64) (*fold, error) {
	f, err := c.fold(ctx, r, 0, at)
	if err != nil {
		return nil, err
	}
	if len(f.history) == 0 && f.started == 0 {
		f.state, f.at, f.through = sdk.TaskStateInputRequired, s.Created, at-1
	}
	return f, c.cutOff(ctx, f, s, at)
}

// loadRewound folds the task that answered a rewind: the conversation right after the
// rewind.
func (c *call) loadRewound(ctx context.Context, r ref, s *tapedeck.Session) (*fold, error) {
	t, err := c.Views.Timeline(ctx, r.session, s.Head)
	if err != nil {
		return nil, err
	}
	j, ok := t.Marked(r.invocation)
	if !ok {
		return nil, noTask(r.id())
	}
	return c.rewound(ctx, r, j.Offset+1)
}

// rewound returns the task that answers a rewind: the conversation that is active as of
// an offset, as a task that is done.
func (c *call) rewound(ctx context.Context, r ref, at int64) (*fold, error) {
	f, err := c.fold(ctx, ref{session: r.session}, 0, at)
	if err != nil {
		return nil, err
	}
	f.ref, f.last, f.through, f.agent, f.state = r, nil, at-1, c.agent.Name, sdk.TaskStateCompleted
	for i, m := range f.history { // the messages name the task that they are in
		own := *m
		own.TaskID = sdk.TaskID(r.id())
		f.history[i] = &own
	}
	return f, nil
}

// fold folds the active events of a task from offset first on, as of offset at.
func (c *call) fold(ctx context.Context, r ref, first, at int64) (*fold, error) {
	f := newFold(r)
	for e, err := range c.Views.Effective(ctx, r.session, first, at) {
		if err != nil {
			return nil, err
		}
		if e.Offset >= at {
			break
		}
		f.begun = f.begun || e.Offset == first && f.has(&e)
		f.apply(&e)
		if f.terminal() {
			break
		}
	}
	return f, nil
}

// cutOff ends the run of a task that has no terminal event among the active ones: a
// rewind, clear or overwrite has reverted its end, or the session is a fork from a
// place before its end.
func (c *call) cutOff(ctx context.Context, f *fold, s *tapedeck.Session, at int64) error {
	if f.open == "" {
		return nil
	}
	t, err := c.Views.Timeline(ctx, f.session, at)
	if err != nil {
		return err
	}
	cut := s.Parent != "" && f.started < s.ForkedAt && s.ForkedAt < at
	for _, j := range t.Jumps() {
		cut = cut || j.Offset > f.started && j.Reverts(f.thread) && !j.Attempt
	}
	if cut {
		for _, t := range f.closeTexts(f.open) {
			t.halves.End()
			f.remember(f.message(&tapedeck.Event{Invocation: t.invocation}, sdk.MessageRoleAgent, t.id, sdk.NewTextPart(t.whole())))
		}
		f.ended()
		f.state = sdk.TaskStateCanceled
		if f.invocation == "" {
			f.state = sdk.TaskStateCompleted // the answer to a rewind says so, too
		}
	}
	return nil
}

// notThere returns the error of a task whose session does not exist.
func notThere(err error, id string) error {
	if k := tapedeck.KindOf(err); k == tapedeck.NotFound || k == tapedeck.Gone {
		return noTask(id)
	}
	return err
}
