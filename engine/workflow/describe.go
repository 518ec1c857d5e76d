package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// describe says what a diagram does and what a run of it needs, with these agents of tasks.
func (l *Library) describe(d *bpmn.Definitions, agents map[string]string) api.Diagram {
	main := d.Main
	out := api.Diagram{
		Digest: digestPrefix + d.Digest, Title: cmp.Or(main.Name, d.Name), Process: main.ID, Fields: fieldsOf(main),
		Tasks: []api.DiagramTask{}, Warnings: problemList(d.Warnings),
	}
	for _, v := range d.Wanted() {
		if v.Name != taskVariable {
			out.Wanted = append(out.Wanted, api.DiagramVariable(v))
		}
	}
	there := l.agents()
	for _, n := range agentTasks(main) {
		t := api.DiagramTask{Element: n.ID, Name: n.Name, Agent: n.AgentFor(agents), Type: n.Agent.Type, Line: n.Line}
		out.Tasks = append(out.Tasks, t)
		if p := unmet(&t, there); p != nil {
			out.Unmet = append(out.Unmet, *p)
		}
	}
	return out
}

// taskVariable has the text of the task, which every run has.
const taskVariable = "task"

// describeAll describes a diagram that is kept. If it has several processes, only their
// names: each needs something else.
func (l *Library) describeAll(list []*bpmn.Definitions, several bool) api.Diagram {
	if !several {
		return l.describe(list[0], nil)
	}
	out := api.Diagram{Digest: digestPrefix + list[0].Digest, Title: cmp.Or(list[0].Name, list[0].Main.Name), Tasks: []api.DiagramTask{}}
	for _, d := range list {
		out.Processes = append(out.Processes, api.DiagramProcess{ID: d.Main.ID, Name: d.Main.Name})
	}
	return out
}

// agents returns the names of the agents that tasks can go to.
func (l *Library) agents() []string {
	var out []string
	for _, a := range l.Engine.Agents() {
		if a.Name != l.Agent {
			out = append(out, a.Name)
		}
	}
	return out
}

// unmet returns what a task still needs, nil if it can run.
func unmet(t *api.DiagramTask, there []string) *tapedeck.Problem {
	p := &tapedeck.Problem{Line: t.Line, Element: t.Element, Name: t.Name}
	switch {
	case t.Agent == "" && t.Type != "":
		p.Message = "no agent is named for the type " + quote(t.Type)
		p.Hint = "name one for the element or for the type when you start it; " + listed("the agents are ", there)
	case t.Agent == "":
		p.Message = "the task names no agent"
		p.Hint = "name one in the diagram, or for the element when you start it; " + listed("the agents are ", there)
	case !slices.Contains(there, t.Agent):
		p.Message = "there is no agent " + quote(t.Agent)
		p.Hint = listed("the agents are ", there)
	default:
		return nil
	}
	return p
}

func quote(s string) string { return `"` + s + `"` }

func listed(intro string, names []string) string {
	if len(names) == 0 {
		return "this server has no agents"
	}
	return intro + strings.Join(names, ", ")
}

// agentTasks returns the elements whose work an agent does, of a process and of those that
// it calls, by their lines.
func agentTasks(p *bpmn.Process) []*bpmn.Node {
	seen := map[*bpmn.Process]bool{}
	var out []*bpmn.Node
	var walk func(s *bpmn.Scope)
	visit := func(p *bpmn.Process) {
		if p != nil && !seen[p] {
			seen[p] = true
			walk(&p.Scope)
		}
	}
	walk = func(s *bpmn.Scope) {
		for _, n := range s.Nodes {
			if n.Agent != nil {
				out = append(out, n)
			}
			if n.Scope != nil {
				walk(n.Scope)
			}
			visit(n.Called)
		}
	}
	visit(p)
	slices.SortStableFunc(out, func(a, b *bpmn.Node) int { return cmp.Compare(a.Line, b.Line) })
	return out
}

// checkAgents refuses agents for elements and types that the diagram does not have.
func checkAgents(d *bpmn.Definitions, agents map[string]string) error {
	known := map[string]bool{}
	for _, n := range agentTasks(d.Main) {
		known[n.ID], known["*"] = true, true
		if n.Agent.Type != "" {
			known[n.Agent.Type] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(agents)) {
		if known[key] || key == "*" && len(known) > 0 {
			continue
		}
		err := tapedeck.Errorf(tapedeck.Invalid, "the diagram has no task of an agent with the id or the type %.128q", key)
		if len(known) == 0 {
			return err.WithHint("no task of it goes to an agent")
		}
		return err.WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return nil
}
