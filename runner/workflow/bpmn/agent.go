package bpmn

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/schema"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// agentPrefix is the beginning of a job type or topic that names an agent.
const agentPrefix = "agent:"

// agent makes the work of an agent of what the extensions say.
func (r *reader) agent(n *Node, p *parts) {
	own := false
	for _, name := range ownTask {
		if text, ok := p.settings["tapedeck:"+name]; ok {
			own = true
			p.settings[name], p.lines[name], p.juel[name] = text, p.lines["tapedeck:"+name], false
		}
	}
	where := atNode(n)
	if !own && (!p.worked || p.work == "" && p.settings["agent"] == "") {
		return // a sketch of Camunda 8 has a worker without a type
	}
	if !n.Kind.works() {
		if n.Kind != UserTask && n.Kind != ThrowEvent && n.Kind != EndEvent && n.Kind != ScriptTask {
			r.refuse(where, "use a service task", "%s cannot have a worker or an agent", article(n.Kind))
		} else {
			r.warn(where, "use a service task for the work of an agent", "the worker %q is not called", p.work)
		}
		return
	}
	a := &AgentTask{Type: p.work, Line: n.Line, ResultAs: AsText}
	if name, ok := strings.CutPrefix(p.work, agentPrefix); ok {
		a.Agent, a.Type = strings.TrimSpace(name), ""
	} else if name, ok := p.settings["agent"]; ok && (own || p.work == "agent" || p.work == "") {
		a.Agent, a.Type = name, ""
		a.Line = p.lines["agent"]
	}
	where.line = a.Line
	if strings.HasPrefix(a.Agent+a.Type, "=") || strings.ContainsAny(a.Agent+a.Type, "{}") {
		r.refuse(where, "write the name of the agent; a run can give another one for the element", "the agent %q is an expression, which is not supported", a.Agent+a.Type)
	}
	if a.Agent == "" && a.Type == "" {
		r.refuse(where, `write tapedeck:agent="NAME", type="agent:NAME" or topic="agent:NAME"`, "the task does not name its agent")
	}
	r.agentSettings(n, p, a)
	n.Agent = a
	n.Inputs = slices.DeleteFunc(n.Inputs, func(m Mapping) bool { return slices.Contains(ownTask, m.Target) }) // they are no variables
}

func (r *reader) agentSettings(n *Node, p *parts, a *AgentTask) {
	here := func(name string) at {
		if line := p.lines[name]; line > 0 {
			return at{line, n.ID, n.Name}
		}
		return atNode(n)
	}
	a.Prompt = r.prompt(n, p, here("prompt"))
	output := p.settings["output"]
	if output == "" {
		output = p.values["resultVariable"]
	}
	if output != "" {
		a.Output = r.variable(here("output"), "the output", output)
	}
	if text := strings.TrimSpace(p.settings["schema"]); text != "" {
		r.schema(a, text, here("schema"))
	}
	switch as := ResultAs(p.settings["resultAs"]); as {
	case "":
	case AsText, AsJSON:
		a.ResultAs = as
	default:
		r.refuse(here("resultAs"), "the allowed values are text and json", "%q is no form of a result", as)
	}
	if a.Schema != nil && p.settings["resultAs"] == string(AsText) {
		r.refuse(here("resultAs"), "remove resultAs, or set it to json", "a result with a schema is JSON, not text")
	}
	if a.Type == "agent" {
		r.warn(at{a.Line, n.ID, n.Name}, `add the header agent, or give an agent for the id of the task when you run the workflow`, "the type is agent, but no header agent names one")
	}
	if a.Agent != "" && a.Type == "" || a.Type == "agent" {
		r.unread(n, p)
	}
}

// unread warns of settings beside those of an agent, because a misspelt one would be
// lost.
func (r *reader) unread(n *Node, p *parts) {
	inputs := map[string]bool{}
	for _, m := range n.Inputs {
		inputs[m.Target] = true
	}
	names := []string{}
	for name := range p.settings {
		if !inputs[name] && !strings.HasPrefix(name, "tapedeck:") && !slices.Contains(ownTask, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		r.warn(at{p.lines[name], n.ID, n.Name}, "the settings of an agent are "+strings.Join(ownTask, ", "), "the header or property %q is not read", name)
	}
}

func (r *reader) prompt(n *Node, p *parts, where at) *expression.Value {
	text, ok := p.settings["prompt"]
	switch {
	case ok && strings.TrimSpace(text) != "" && p.juel["prompt"]:
		return r.compiled(where, expression.ParseJUEL, text)
	case ok && strings.TrimSpace(text) != "" && slices.ContainsFunc(n.Inputs, func(m Mapping) bool { return m.Target == "prompt" }):
		return r.compiled(where, expression.ParseValue, text) // the input has its warnings
	case ok && strings.TrimSpace(text) != "":
		return r.value(where, text)
	case n.partial:
		r.refuse(atNode(n), "give the task a prompt", "the documentation of the task would be its prompt, and has elements in it that are not read")
		return expression.Literal(n.Documentation)
	case n.Documentation != "":
		return expression.Literal(n.Documentation)
	case n.Name != "":
		return expression.Literal(n.Name)
	}
	return expression.Literal(n.ID)
}

func (r *reader) schema(a *AgentTask, text string, where at) {
	v, _ := expression.Decode([]byte(text)) // Read says what is wrong
	if long := longNumber(v); long != "" {
		r.refuse(where, "a number of up to 15 digits is kept exactly", "the schema has the number %.40s, which is too long", long)
		return
	}
	s, hint, err := schema.Read(text)
	if err != nil {
		r.refuse(where, hint, "%v", err)
		return
	}
	a.Schema, a.ResultAs, a.schema = json.RawMessage(text), AsJSON, s
}

// maxSteps bounds the comparison of an answer with its schema.
const maxSteps = 1_000_000

// Result makes the result of the text of an agent: the text itself, or the JSON value in
// it, which may stand in a fenced block of Markdown. A result that does not fit the
// schema is an error, as is a text that should be JSON and is not. Errors are of kind
// [tapedeck.Invalid].
func (a *AgentTask) Result(text string) (any, error) {
	if len(text) > expression.MaxSize {
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the agent's answer does not fit into a variable, which has at most %d bytes", expression.MaxSize).
			WithHint("ask for a shorter answer, or take it into no variable")
	}
	if a.ResultAs != AsJSON {
		return text, nil
	}
	v, err := jsonIn(text)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the agent's answer is not JSON").WithHint("ask for JSON only in the prompt; the answer begins with %.100q", text).Because(err)
	}
	if a.schema == nil {
		return v, nil
	}
	plain, err := forSchema(v)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the agent's answer cannot be compared with its schema: %s", firstLine(err.Error())).Because(err)
	}
	if err := a.schema.Validate(plain, maxSteps); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the agent's answer does not fit its schema: %s", firstLine(err.Error())).Because(err)
	}
	return v, nil
}

// forSchema returns a value with the numbers that the library of schemas knows: it takes a
// json.Number for a text. Here a float64 remains, because the schema has no other numbers;
// but the value that becomes a variable is the exact one.
func forSchema(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		n, err := expression.ParseNumber(v.String())
		if err != nil {
			return nil, err
		}
		if i, ok := n.(int); ok {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the number %.40s is too large", v)
		}
		return f, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = forSchema(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = forSchema(v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// longNumber returns a number of a schema that its float64 would change, "" if there is none.
func longNumber(v any) string {
	switch v := v.(type) {
	case json.Number:
		d, err := decimal.Parse(v.String())
		f, _ := v.Float64()
		if kept, wrong := decimal.FromFloat(f); err != nil || wrong != nil || kept != d {
			return v.String()
		}
	case []any:
		for _, e := range v {
			if text := longNumber(e); text != "" {
				return text
			}
		}
	case map[string]any:
		for _, e := range v {
			if text := longNumber(e); text != "" {
				return text
			}
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}

var errNoJSON = errors.New("there is no JSON in the text")

// jsonIn returns the value if all of the text is JSON, or if the text has exactly one
// fenced block and that is JSON. Anything else would be a guess.
func jsonIn(text string) (any, error) {
	v, err := expression.Decode([]byte(text))
	if err == nil {
		return v, nil
	}
	parts := strings.Split(text, "```")
	if len(parts) != 3 {
		return nil, errors.Join(errNoJSON, err)
	}
	block := strings.TrimPrefix(strings.TrimPrefix(parts[1], "json"), "JSON")
	if v, err = expression.Decode([]byte(block)); err != nil {
		return nil, errors.Join(errNoJSON, err)
	}
	return v, nil
}

// AgentFor returns the name of the agent that works on a task: the one that agents has
// for its id, for its type, for "*" if the task names no agent, or the one that the file
// names. It is "" if there is none. The node must have an [AgentTask].
func (n *Node) AgentFor(agents map[string]string) string {
	if name := agents[n.ID]; name != "" {
		return name
	}
	if n.Agent.Agent != "" {
		return n.Agent.Agent
	}
	if name := agents[n.Agent.Type]; name != "" {
		return name
	}
	return agents["*"]
}

// CheckAgents checks that every task that a run can reach has an agent, and that the
// agents exist. agents is what the run says, by the ids or types of tasks; see
// [Node.AgentFor]. exists returns nil, or an error that says why the agent cannot be
// used. The error is an [*Error]; it also names keys of agents that no task has.
func (d *Definitions) CheckAgents(agents map[string]string, exists func(name string) error) error {
	var problems []Problem
	used := map[string]bool{"*": true}
	each := func(n *Node) {
		if n.Agent == nil {
			return
		}
		used[n.ID], used[n.Agent.Type] = true, true
		name := n.AgentFor(agents)
		p := Problem{Line: n.Agent.Line, Element: n.ID, Name: n.Name}
		if name == "" {
			p.Message = "no agent works on tasks of the type \"" + n.Agent.Type + "\""
			p.Hint = "name an agent for the type or for the id of the element when you run the workflow, or set tapedeck:agent"
			problems = append(problems, p)
			return
		}
		if err := exists(name); err != nil {
			p.Message = err.Error()
			var e *tapedeck.Error
			if errors.As(err, &e) {
				p.Hint = e.Hint
			}
			problems = append(problems, p)
		}
	}
	for n := range d.Reached() {
		each(n)
	}
	for key := range agents {
		if !used[key] {
			problems = append(problems, Problem{Line: d.Main.Line, Element: d.Main.ID, Name: d.Main.Name, Message: "an agent is given for \"" + key + "\", which is neither the id nor the type of a task of an agent"})
		}
	}
	return errorOf(problems)
}

// Reached returns every element that a run can reach, with those of called processes.
func (d *Definitions) Reached() map[*Node]bool {
	out, seen := map[*Node]bool{}, map[*Process]bool{}
	var visit func(p *Process)
	visit = func(p *Process) {
		if p == nil || seen[p] {
			return
		}
		seen[p] = true
		each(&p.Scope, func(n *Node) {
			out[n] = true
			visit(n.Called)
		})
	}
	visit(d.Main)
	return out
}
