package agentconfig

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// checkWorkflow checks the settings of an agent that is a diagram.
func (a *agent) checkWorkflow() error {
	if a.Kind != "workflow" {
		return nil
	}
	if (a.File == "") == (a.Workflow == "") {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s, of kind workflow, needs either a file or a workflow", a.Name).
			WithHint(`set file to a .bpmn file, or workflow to the name of a diagram that is stored with "tapedeck workflow put"`)
	}
	name := a.TaskVariable
	if name == "" {
		name = "task"
	}
	if _, has := a.Variables[name]; has {
		return tapedeck.Errorf(tapedeck.Invalid, "the variable %s of the agent %s gets the text of the task, so it cannot be set", name, a.Name).
			WithHint("give task_variable another name")
	}
	for task, name := range a.Agents {
		if name == a.Name {
			return tapedeck.Errorf(tapedeck.Invalid, "the task %q of the agent %s would go to the agent itself", task, a.Name)
		}
		if len(a.Starts) > 0 && !slices.Contains(a.Starts, name) {
			return tapedeck.Errorf(tapedeck.Invalid, "the task %q of the agent %s goes to %s, which starts does not name", task, a.Name, name)
		}
	}
	return nil
}

// workflow returns the runner of an agent that is a diagram. A relative path of the file
// begins at base.
func (a *agent) workflow(base string) (tapedeck.Runner, error) {
	o := workflow.Options{Name: a.Workflow, Process: a.Process, TaskVariable: a.TaskVariable, Agents: a.Agents, Variables: map[string]json.RawMessage{}}
	for name, v := range a.Variables {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the variable %s of the agent %s cannot be written as JSON", name, a.Name).Because(err)
		}
		o.Variables[name] = raw
	}
	if a.File == "" {
		return workflow.New(o), nil
	}
	path := a.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return fromFile(path, o), nil
}

// fromFile returns the runner of the diagram in a file, or one that cannot run.
func fromFile(path string, o workflow.Options) tapedeck.Runner {
	xml, err := readDiagram(path)
	if err != nil {
		return unready{workflow.New(o), err}
	}
	o.XML = xml
	return workflow.New(o)
}

// readDiagram reads a diagram. An error says why the agent cannot run.
func readDiagram(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, tapedeck.Errorf(tapedeck.Unavailable, "there is no file %s", path)
		}
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the file %s cannot be read", path).Because(err)
	}
	defer func() { _ = f.Close() }()
	xml, err := io.ReadAll(io.LimitReader(f, bpmn.MaxFile+1)) // the runner refuses one that is larger
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the file %s cannot be read", path).Because(err)
	}
	return xml, nil
}
