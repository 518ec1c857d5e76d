package engine

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// link returns the runner's own conversation that a run can continue, nil if there is
// none. It is nil if that conversation differs from the active events of the thread:
// the thread was rewound since the link was recorded, the link is from the parent of
// a fork, or someone else has written to the thread since.
func (e *Engine) link(ctx context.Context, s *tapedeck.Session, thread string, agent *Agent, told *view.Link) (*tapedeck.Link, error) {
	if told == nil || told.Offset < s.ForkedAt || !mayResume(agent) || !isID(told.NativeID) {
		return nil, nil // an id that begins with a dash could be taken for an option of a program
	}
	t, err := e.views.Timeline(ctx, s.ID, s.Head)
	if err != nil {
		return nil, err
	}
	if j, ok := t.Before(thread, s.Head); ok && j.Offset > told.Offset {
		return nil, nil
	}
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread})
	if err != nil || !hasAll(&now, told, agent.Name) {
		return nil, err
	}
	return &tapedeck.Link{Runner: told.Runner, NativeID: told.NativeID, Offset: told.Offset}, nil
}

// mayResume reports whether the runner can use a link.
func mayResume(a *Agent) bool {
	c, ok := a.Runner.(runner.Capable)
	return !ok || c.Capabilities().Resume
}

// hasAll reports whether all messages since a link was recorded are from runs of one
// agent, beginning with the run that recorded it.
func hasAll(now *view.Snapshot, told *view.Link, agent string) bool {
	i := slices.IndexFunc(now.Runs, func(r view.Run) bool { return r.Invocation == told.Invocation })
	if i < 0 { // the link has no run, or one so old that it is not loaded
		return false
	}
	theirs := map[string]bool{}
	for _, r := range now.Runs[i:] {
		if r.Agent != agent {
			return false
		}
		theirs[r.Invocation] = true
	}
	return !slices.ContainsFunc(now.Messages, func(m view.Message) bool {
		return m.Offset > told.Offset && !theirs[m.Invocation]
	})
}

func isID(id string) bool { return tapedeck.CheckID("the native id", id) == nil }
