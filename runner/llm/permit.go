package llm

import (
	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// The answers to a question.
const (
	allowOnce   = "allow_once"
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
)

// permit reports whether a call may be carried out, and asks people if it must.
// If not, it has told the model so; an error ends the run.
func (s *run) permit(t *tool.Tool, c *call, arguments string) (bool, error) {
	if s.toolbox.always[t.Name] || s.runner.options.Policy.decide(t) == Allow {
		return true, nil
	}
	if s.in.Ask == nil {
		return false, s.result(c, tool.Failed("Nobody can be asked here whether %s may be called, so it is not allowed.", t.Name), 0)
	}
	answer, err := s.in.Ask(s.ctx, question(t, c, arguments))
	switch {
	case s.ctx.Err() != nil:
		return false, s.ctx.Err()
	case err != nil:
		return false, err
	}
	switch answer.Option {
	case allowAlways:
		s.toolbox.always[t.Name] = true
		return true, nil
	case allowOnce:
		return true, nil
	case "":
		if err := s.result(c, tool.Failed("Nobody has said whether this may be done, so it was not."), 0); err != nil {
			return false, err
		}
		return false, tapedeck.Errorf(tapedeck.Conflict, "nobody has said whether the agent may call %s, so it has stopped", t.Name)
	}
	return false, s.result(c, tool.Failed("The user does not allow this."), 0)
}

func question(t *tool.Tool, c *call, arguments string) tapedeck.PermissionRequestedData {
	shown := arguments
	if r := []rune(shown); len(r) > maxQuestion {
		shown = string(r[:maxQuestion]) + "…"
	}
	return tapedeck.PermissionRequestedData{
		ID: tapedeck.NewID("perm_"), ToolCallID: c.id,
		Message: "May the agent call " + t.Name + " with " + shown + "?",
		Options: []tapedeck.PermissionOption{
			{ID: allowOnce, Name: "Allow once", Kind: allowOnce},
			{ID: allowAlways, Name: "Allow for the rest of this run", Kind: allowAlways},
			{ID: rejectOnce, Name: "Reject", Kind: rejectOnce},
		},
	}
}
