package engine

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// link returns the runner's own conversation with which a run can go on, nil if
// that has not all of what is in force in the thread, or something that is not:
// the thread has gone back since it was told, it was told in the parent of a
// fork, or somebody else has spoken since.
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
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Thread: thread})
	if err != nil || !hasAll(&now, told, agent.Name) {
		return nil, err
	}
	return &tapedeck.Link{Runner: told.Runner, NativeID: told.NativeID, Offset: told.Offset}, nil
}

// mayResume reports whether the runner has use for a link.
func mayResume(a *Agent) bool {
	c, ok := a.Runner.(runner.Capable)
	return !ok || c.Capabilities().Resume
}

// hasAll reports whether everything said since a link was told was said in runs
// of one agent, from that on in which it was told.
func hasAll(now *view.Snapshot, told *view.Link, agent string) bool {
	i := slices.IndexFunc(now.Runs, func(r view.Run) bool { return r.Invocation == told.Invocation })
	if i < 0 { // it is not of a run, or of one so long ago that it is not at hand
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
