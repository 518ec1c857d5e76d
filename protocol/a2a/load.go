package a2a

import (
	"cmp"
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
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
	newest := f.through
	if len(f.history) == 0 && f.started == 0 {
		f.state, f.at, f.through = sdk.TaskStateInputRequired, s.Created, at-1
	}
	if err := c.cutOff(ctx, f, s, at); err != nil || s.LastJump == 0 {
		return f, err
	}
	t, err := c.Views.Timeline(ctx, r.session, at)
	if err != nil {
		return nil, err
	}
	if j, ok := wentBack(t, newest, at); ok {
		f.state, f.last, f.through = sdk.TaskStateCompleted, nil, j.Offset
	}
	return f, nil
}

// wentBack returns the jump after which nothing has happened in the main thread as of offset
// at: a rewind, a clear or an overwrite. newest is the offset of the newest active event of
// the thread, -1 for none. After an undo the thread is as before the jump that was undone.
func wentBack(t *view.Timeline, newest, at int64) (tapedeck.Jump, bool) {
	for {
		j, ok := t.Before(tapedeck.MainThread, at)
		if !ok || newest > j.Offset {
			return tapedeck.Jump{}, false
		}
		undone, ok := t.Before(tapedeck.MainThread, j.To+1)
		if !j.Attempt && (!ok || undone.Offset != j.To) {
			return j, true
		}
		at = j.To
	}
}

// loadRewound folds the task that answered a rewind: the conversation that was active right
// after it, as a task that is done.
func (c *call) loadRewound(ctx context.Context, r ref, s *tapedeck.Session) (*fold, error) {
	t, err := c.Views.Timeline(ctx, r.session, s.Head)
	if err != nil {
		return nil, err
	}
	j, ok := t.Marked(r.invocation)
	if !ok {
		return nil, noTask(r.id())
	}
	f, err := c.fold(ctx, ref{session: r.session}, 0, j.Offset+1)
	if err != nil {
		return nil, err
	}
	f.ref, f.last, f.through, f.agent, f.state = r, nil, j.Offset, c.agent.Name, sdk.TaskStateCompleted
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
