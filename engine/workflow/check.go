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
	d, _, err := l.source(ctx, c.BPMN, c.Name, c.Version)
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

// source returns the diagram of a request.
func (l *Library) source(ctx context.Context, text, name, version string) (*bpmn.Definitions, string, error) {
	switch {
	case text != "" && name != "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the request has a diagram and the name of a workflow").WithHint("give bpmn or name, not both")
	case text == "" && name == "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the request has no diagram").WithHint("give bpmn, the text of a .bpmn file, or name, the name of a stored workflow")
	case version != "" && name == "":
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "only a stored workflow has versions").WithHint("give version together with name")
	case name != "":
		_, diagram, err := l.stored(ctx, name, version)
		if err != nil {
			return nil, "", err
		}
		text = string(diagram)
	}
	d, err := readDiagram([]byte(text))
	return d, text, err
}
