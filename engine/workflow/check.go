package workflow

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// Check says what a diagram does and what a run of it needs. A diagram that cannot run is
// [tapedeck.Invalid], with all its problems.
func (l *Library) Check(ctx context.Context, c api.CheckWorkflow) (api.Diagram, error) {
	d, _, err := l.source(ctx, source{c.BPMN, c.Name, c.Version, c.Process})
	if err == nil {
		err = checkAgents(d, c.Agents)
	}
	if err != nil {
		return api.Diagram{}, err
	}
	out := l.describe(d, c.Agents)
	out.Name = c.Name
	return out, nil
}

// A source says which diagram a request means, and which of its processes.
type source struct{ text, name, version, process string }

// source returns the diagram of a request, and its text with the diagrams that it calls.
func (l *Library) source(ctx context.Context, s source) (*bpmn.Definitions, string, error) {
	switch {
	case s.text != "" && s.name != "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the request has a diagram and the name of a workflow").WithHint("give bpmn or name, not both")
	case s.text == "" && s.name == "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the request has no diagram").WithHint("give bpmn, the text of a .bpmn file, or name, the name of a stored workflow")
	case s.version != "" && s.name == "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "only a stored workflow has versions").WithHint("give version together with name")
	case s.name != "":
		_, diagram, err := l.stored(ctx, s.name, s.version)
		if err != nil {
			return nil, "", err
		}
		s.text = string(diagram)
	}
	d, whole, err := l.read(ctx, []byte(s.text), s.process)
	return d, string(whole), err
}
