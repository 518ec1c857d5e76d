package llm

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// These are the options of a question.
const (
	allowOnce   = "allow_once"
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
)

// permit reports whether a call is allowed. It asks people if the policy says so. If the
// call is not allowed, permit has already yielded the result. An error ends the run.
func (s *run) permit(t *tool.Tool, c *call, arguments string) (bool, error) {
	key, covers := scopeOf(t, arguments)
	if s.toolbox.always[key] || s.runner.options.Policy.decide(t) == Allow {
		return true, nil
	}
	if s.in.Ask == nil {
		return false, s.result(c, tool.Failed("%s needs a permission, and nobody can be asked here, so it is not allowed.", t.Name), 0)
	}
	answer, err := s.in.Ask(s.ctx, question(t, c, arguments, covers))
	switch {
	case s.ctx.Err() != nil:
		return false, s.ctx.Err()
	case err != nil:
		return false, err
	}
	switch answer.Option {
	case allowAlways:
		s.toolbox.always[key] = true
		return true, nil
	case allowOnce:
		return true, nil
	case "":
		if err := s.result(c, tool.Failed("Nobody answered the permission request, so this was not done."), 0); err != nil {
			return false, err
		}
		return false, tapedeck.Errorf(tapedeck.Conflict, "nobody answered whether the agent may call %s, so it has stopped", t.Name)
	}
	return false, s.result(c, tool.Failed("The user does not allow this."), 0)
}

// scopeOf returns what "Always allow" permits: every call with the same key. covers
// describes these calls for people.
func scopeOf(t *tool.Tool, arguments string) (key, covers string) {
	if t.Scope == nil {
		return t.Name, "every call of " + t.Name + ", whatever its arguments"
	}
	key, covers = t.Scope(json.RawMessage(arguments))
	return t.Name + "\x00" + key, covers
}

func question(t *tool.Tool, c *call, arguments, covers string) tapedeck.Question {
	covers += ", until this run ends"
	return tapedeck.Question{
		ID: tapedeck.NewID("perm_"), ToolCallID: c.id,
		Message: "May the agent call " + t.Name + "?", Action: action(t, arguments),
		Options: []tapedeck.PermissionOption{
			{ID: allowOnce, Name: "Allow once", Kind: allowOnce},
			{ID: allowAlways, Name: "Always allow " + covers, Kind: allowAlways, Covers: covers},
			{ID: rejectOnce, Name: "Reject", Kind: rejectOnce},
		},
	}
}

// action describes what a call would do.
func action(t *tool.Tool, arguments string) *tapedeck.PermissionAction {
	var a *tapedeck.PermissionAction
	if t.Propose != nil {
		a = t.Propose(json.RawMessage(arguments))
	} else {
		d := proposal.FromArguments(t.Name, json.RawMessage(arguments))
		a = d.Action()
	}
	if a != nil {
		a.Tool = t.Name
	}
	return a
}
