package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// Opening returns the workflow.started of an invocation; see runner.Opening. A diagram
// that cannot run, an agent that does not exist and a variable that is missing are
// errors: then nothing is started.
func (r *Runner) Opening(ctx context.Context, in tapedeck.Invocation) ([]tapedeck.Event, error) {
	if in.Resumes != "" {
		return r.reopening(ctx, &in)
	}
	c, err := parseConfig(in.Config)
	if err != nil {
		return nil, err
	}
	xml, process, err := r.xml(ctx, c)
	if err != nil {
		return nil, err
	}
	whole, err := r.whole(ctx, []byte(xml))
	if err != nil {
		return nil, err
	}
	xml = string(whole)
	d, err := r.definitions.read(xml, process)
	if err != nil {
		return nil, err
	}
	agents := usable(r.options.Agents, d.Definitions)
	maps.Copy(agents, c.Agents)
	if err := checkAgents(d.Definitions, agents, &in); err != nil {
		return nil, err
	}
	variables, err := r.firstVariables(ctx, d.Main.Start, c.Variables, in.Task)
	if err != nil {
		return nil, err
	}
	if err := d.CheckVariables(func(name string) bool { return variables[name] != nil }); err != nil {
		return nil, err
	}
	started := payload.WorkflowStarted{
		Process: d.Main.ID, Name: cmp.Or(d.Main.Name, c.Name), Digest: digestOf(d.Definitions), XML: xml, Starts: bpmn.IDs(d.Main.Starts),
		Variables: variables, Agents: agents,
	}
	if len(agents) == 0 {
		started.Agents = nil
	}
	return []tapedeck.Event{payload.NewEvent(started)}, nil
}

// usable returns the agents of the options that a diagram can use. They are for all
// diagrams, so one that names an element of another diagram is no mistake.
func usable(agents map[string]string, d *bpmn.Definitions) map[string]string {
	out := map[string]string{}
	for key, name := range agents {
		if key == "*" || d.Node(key) != nil {
			out[key] = name
		}
	}
	for n := range d.Reached() {
		if n.Agent == nil {
			continue
		}
		if name, has := agents[n.Agent.Type]; has && n.Agent.Type != "" {
			out[n.Agent.Type] = name
		}
	}
	return out
}

// reopening returns the event that continues a process in a new invocation.
func (r *Runner) reopening(ctx context.Context, in *tapedeck.Invocation) ([]tapedeck.Event, error) {
	f := view.NewWorkflowFold(in.Thread)
	if in.History != nil {
		for ev, err := range in.History(ctx) {
			if err != nil {
				return nil, err
			}
			f.Apply(&ev)
		}
	}
	if !f.Known() {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "there is no workflow to continue on thread %s", in.Thread).WithHint("run the workflow again")
	}
	if h := f.Head(); h.Status == tapedeck.StatusComplete {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the workflow is %s, so there is nothing to continue", h.Outcome).
			WithHint("rewind to before one of its elements, or run the workflow again")
	}
	h := f.Head()
	return []tapedeck.Event{payload.NewEvent(payload.WorkflowStarted{Process: h.Process, Name: h.Name, Digest: h.Digest, Resumes: in.Resumes})}, nil
}

// CheckConfig implements runner.Configurable.
func (r *Runner) CheckConfig(config json.RawMessage) error {
	_, err := parseConfig(config)
	return err
}

func parseConfig(raw json.RawMessage) (c Config, err error) {
	if err := runner.CheckMembers(raw, "bpmn", "name", "digest", "process", "variables", "agents"); err != nil || len(raw) == 0 {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, tapedeck.Errorf(tapedeck.Invalid, "the config of the workflow cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return c, nil
}

// xml returns the diagram of a task, and the process to run.
func (r *Runner) xml(ctx context.Context, c Config) (xml, process string, err error) {
	switch {
	case c.BPMN != "" && c.Name != "":
		return "", "", tapedeck.Errorf(tapedeck.Invalid, "the task has a diagram and the name of one").WithHint("give either bpmn or name")
	case strings.HasPrefix(strings.TrimSpace(c.BPMN), "{"):
		return "", "", tapedeck.Errorf(tapedeck.Invalid, "the diagram is JSON, not BPMN").WithHint("give the XML of the diagram")
	case c.BPMN != "":
		return c.BPMN, c.Process, nil
	case c.Name != "":
		stored, err := r.stored(ctx, c.Name, c.Digest)
		return string(stored), c.Process, err
	}
	own, err := r.ownXML(ctx)
	return string(own), cmp.Or(c.Process, r.options.Process), err
}

// checkAgents checks that the tasks have agents which the invocation can start.
func checkAgents(d *bpmn.Definitions, agents map[string]string, in *tapedeck.Invocation) error {
	var names []string
	for _, a := range in.Delegates {
		names = append(names, a.Name)
	}
	return d.CheckAgents(agents, func(name string) error {
		i := slices.Index(names, name)
		switch {
		case i < 0 && len(names) == 0:
			return tapedeck.Errorf(tapedeck.Invalid, "the agent %.100q cannot be started: the workflow may start no agents", name)
		case i < 0:
			return tapedeck.Errorf(tapedeck.Invalid, "there is no agent %.100q that the workflow may start", name).WithHint("the agents are %s", strings.Join(names, ", "))
		case in.Delegates[i].Unavailable != "":
			return tapedeck.Errorf(tapedeck.Invalid, "the agent %s cannot run here: %s", name, in.Delegates[i].Unavailable)
		}
		return nil
	})
}

// firstVariables returns the variables of a new process: those that are given, those of the
// options, the defaults of the form of the start event, and the text of the task.
func (r *Runner) firstVariables(ctx context.Context, start *bpmn.Node, given map[string]json.RawMessage, task string) (tapedeck.Members, error) {
	out := tapedeck.Members{}
	for name, value := range r.options.variables(given) {
		if err := checkVariable(name, value); err != nil {
			return nil, err
		}
		out[name] = value
	}
	if name := r.options.taskVariable(); task != "" && out[name] == nil {
		v, err := taskValue(start, name, task)
		if err != nil {
			return nil, err
		}
		out[name] = encode(v)
		if err := checkVariable(name, out[name]); err != nil {
			return nil, err
		}
	}
	if n := sizeOf(out); n > r.maxState {
		return nil, r.tooLarge(n)
	}
	return withDefaults(ctx, start, out)
}

// withDefaults adds the defaults of the form of a start event, nil for none, to the variables
// of a process. A variable that the form requires must be there.
func withDefaults(ctx context.Context, start *bpmn.Node, out tapedeck.Members) (tapedeck.Members, error) {
	if start == nil || start.Form == nil {
		return out, nil
	}
	if out == nil {
		out = tapedeck.Members{}
	}
	values := decodeAll(out)
	for i := range start.Form.Fields {
		f := &start.Form.Fields[i]
		if value, has := out[f.ID]; has && string(value) != "null" {
			continue
		}
		if f.Default != nil {
			v, err := fieldDefault(ctx, f, values)
			if err == nil {
				err = checkDefault(f, v)
			}
			if err != nil {
				return nil, err
			}
			out[f.ID] = encode(v)
		} else if f.Required {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the variable %s is missing: the start event %q asks for it", f.ID, start.ID).WithHint("give variables.%s", f.ID)
		}
	}
	return out, nil
}
