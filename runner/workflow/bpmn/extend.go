package bpmn

import (
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// parts is what extension attributes and elements say about one element, whatever the
// tool that wrote them.
type parts struct {
	work     string            // the job type or topic
	worked   bool              // a worker is named, though its type may be empty
	settings map[string]string // headers, properties and inputs by name
	lines    map[string]int
	juel     map[string]bool // which settings are in the form of Camunda 7
	agent    *element        // tapedeck:agent
	values   map[string]string
}

func (p *parts) set(name, text string, line int, juel bool) {
	if _, ok := p.settings[name]; !ok {
		p.settings[name], p.lines[name], p.juel[name] = text, line, juel
	}
}

// extend reads the extension attributes and elements of a node.
func (r *reader) extend(e *element, n *Node) {
	p := &parts{settings: map[string]string{}, lines: map[string]int{}, juel: map[string]bool{}, values: map[string]string{}}
	r.ownAttributes(e, n, p)
	r.camundaAttributes(e, n, p)
	for _, x := range e.extensions() {
		switch {
		case x.Space == tapedeckNamespace:
			r.ownElement(x, n, p)
		case x.Space == zeebeNamespace:
			r.zeebeElement(x, n, p)
		case camundaNamespaces[x.Space] != "":
			r.camundaElement(x, n, p)
		}
	}
	r.agent(n, p)
	r.finish(n, p)
}

// finish checks what the parts are together.
func (r *reader) finish(n *Node, p *parts) {
	switch n.Kind {
	case ScriptTask:
		if n.Script == nil && n.Agent == nil && !r.refused(n) {
			r.refuse(atNode(n), "write lines such as total = price * count", "the script task has no script")
		}
	case CallActivity:
		if n.CalledProcess == "" && !r.refused(n) {
			r.warn(atNode(n), "set calledElement (Camunda 7) or zeebe:calledElement processId (Camunda 8) to the id of a process", "the call activity does not say which process it runs, so it does nothing")
		}
	case ServiceTask, BusinessRuleTask, SendTask:
		if n.Agent == nil && n.Script == nil && n.Event == nil && !r.refused(n) {
			r.warn(atNode(n), "give it an agent, for example with tapedeck:agent", "the task names no agent and no type of work, so it does nothing")
		}
	}
	if n.Agent != nil && n.Script != nil {
		r.refuse(atNode(n), "remove one of them", "the task has an agent and a script")
	}
	if result := p.values["resultVariable"]; result != "" {
		switch {
		case n.Script != nil:
			n.Script.Result = r.variable(atNode(n), "the result", result)
		case n.Agent == nil:
			r.warn(atNode(n), "", "resultVariable is not read, because the task has no script and no agent")
		}
	}
	if n.Script != nil && n.Script.Result == "" && n.Script.Lines.HasValue() {
		r.refuse(atNode(n), "set resultVariable, or write name = expression", "no variable gets the value of the script")
	}
}

// refused reports whether the element has a problem already.
func (r *reader) refused(n *Node) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Element == n.ID && p.in == n.Process })
}

// lines compiles a script.
func (r *reader) lines(where at, text string) *Script {
	s, err := expression.CompileScript(text)
	if err != nil {
		r.refuseError(where, err)
		return nil
	}
	return &Script{Lines: s}
}

func (r *reader) expression(where at, text string) *expression.Value {
	return r.compiled(where, expression.ParseExpression, text)
}

// These are the attributes of our namespace, by where they may be.
var (
	ownTask    = []string{"agent", "prompt", "output", "resultAs", "schema"}
	ownLoop    = []string{"collection", "element", "outputCollection", "outputElement"}
	ownMessage = []string{"correlation"}
)

// checkOwn refuses attributes and extension elements of our namespace that are not known
// where they are: a setting that was misspelt must not be lost.
func (r *reader) checkOwn(e *element, where at) {
	if id := idOf(e); id != "" {
		where = atElement(e)
	}
	where.line = e.line
	kind := kinds[e.Local]
	var allowed []string
	switch {
	case kind.works():
		allowed = ownTask
	case e.Local == "multiInstanceLoopCharacteristics":
		allowed = ownLoop
	}
	if e.Local == "message" || e.Local == "messageEventDefinition" || kind == ReceiveTask || kind == SendTask {
		allowed = append(slices.Clone(allowed), ownMessage...)
	}
	for _, a := range e.attrs {
		if a.Name.Space == tapedeckNamespace {
			r.allowed(where, "attribute", a.Name.Local, e.Local, allowed)
		}
	}
	var elements []string
	if e.Local == "definitions" {
		elements = []string{diagramElement}
	}
	for _, x := range e.extensions() {
		if x.Space == tapedeckNamespace && kind == "" {
			r.allowed(at{x.line, where.id, where.name}, "extension element", x.Local, e.Local, elements)
		}
	}
	for _, c := range e.children {
		if c.Space == modelNamespace && c.Local != "extensionElements" {
			r.checkOwn(c, where)
		}
	}
}

// ownAttributes reads tapedeck:agent and the others in the tag of a task.
func (r *reader) ownAttributes(e *element, n *Node, p *parts) {
	for _, a := range e.attrs {
		if a.Name.Space == tapedeckNamespace && n.Kind.works() && a.Name.Local != "correlation" {
			p.set("tapedeck:"+a.Name.Local, a.Value, e.line, false)
		}
	}
}

// allowed reports whether a name of our namespace may be there; if not, it is refused
// with the names that may.
func (r *reader) allowed(where at, what, name, owner string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	hint := owner + " has none"
	if len(names) > 0 {
		hint = "the allowed names are tapedeck:" + strings.Join(names, ", tapedeck:")
	}
	r.refuse(where, hint, "tapedeck:%s is no %s of %s", name, what, owner)
	return false
}

// works reports whether an agent can do the work of such an element.
func (k Kind) works() bool {
	return k == Task || k == ServiceTask || k == SendTask || k == BusinessRuleTask
}

func (r *reader) ownElement(x *element, n *Node, p *parts) {
	where := at{x.line, n.ID, n.Name}
	allowed := []string{"input", "output"}
	if !n.Kind.Activity() {
		allowed = []string{"output"}
	}
	if n.Kind.works() {
		allowed = append(allowed, "agent")
	}
	if n.Kind == UserTask || n.Kind == StartEvent {
		allowed = append(allowed, "form")
	}
	if !r.allowed(where, "extension element", x.Local, article(n.Kind), allowed) {
		return
	}
	switch x.Local {
	case "agent":
		r.ownAgent(x, where, p)
	case "form":
		r.ownForm(x, n)
	case "input", "output":
		r.ownNames(x, where, []string{"name", "value"}, nil)
		text := x.attr("value")
		if text == "" {
			text = x.content()
		}
		m := Mapping{Target: r.variable(where, "the target", x.attr("name")), Source: r.value(where, text), Line: x.line}
		if x.Local == "input" {
			n.Inputs = append(n.Inputs, m)
		} else {
			n.Outputs = append(n.Outputs, m)
		}
	}
}

// ownNames checks the attributes and the children of an element of ours.
func (r *reader) ownNames(x *element, where at, attrs, children []string) {
	for _, a := range x.attrs {
		if (a.Name.Space == "" || a.Name.Space == tapedeckNamespace) && !slices.Contains(attrs, a.Name.Local) && a.Name.Local != "xmlns" {
			r.refuse(where, "the allowed attributes are "+strings.Join(attrs, ", "), "%s is no attribute of tapedeck:%s", a.Name.Local, x.Local)
		}
	}
	for _, c := range x.children {
		if !slices.Contains(children, c.Local) || c.Space != tapedeckNamespace {
			hint := "it has no elements"
			if len(children) > 0 {
				hint = "the allowed elements are tapedeck:" + strings.Join(children, ", tapedeck:")
			}
			r.refuse(at{c.line, where.id, where.name}, hint, "%s is no element of tapedeck:%s", c.Local, x.Local)
		}
	}
}

// ownAgent reads <tapedeck:agent name="…" output="…"> with tapedeck:prompt and
// tapedeck:schema in it.
func (r *reader) ownAgent(x *element, where at, p *parts) {
	r.ownNames(x, where, []string{"name", "prompt", "output", "resultAs", "schema"}, []string{"prompt", "schema"})
	if p.agent != nil {
		r.refuse(where, "", "the task has more than one tapedeck:agent")
		return
	}
	p.agent = x
	if x.attr("name") == "" {
		if _, ok := p.settings["tapedeck:agent"]; !ok {
			r.refuse(where, `write <tapedeck:agent name="…">`, "tapedeck:agent has no name")
		}
	}
	for _, a := range x.attrs {
		name := a.Name.Local
		if name == "name" {
			name = "agent"
		}
		p.set("tapedeck:"+name, a.Value, x.line, false)
	}
	for _, c := range x.children {
		p.set("tapedeck:"+c.Local, c.content(), c.line, false)
	}
}

// loopExtensions reads the collection of a multi-instance activity.
func (r *reader) loopExtensions(c *element, l *Loop, where at) {
	for _, a := range c.attrs {
		text := strings.TrimSpace(a.Value)
		own := a.Name.Space == tapedeckNamespace
		if text == "" || !own && camundaNamespaces[a.Name.Space] == "" {
			continue
		}
		switch a.Name.Local {
		case "collection":
			l.Collection = r.expression(where, text)
		case "element", "elementVariable":
			l.Element = r.variable(where, "the element", text)
		case "outputCollection":
			l.OutputCollection = r.variable(where, "the output collection", text)
		case "outputElement":
			l.OutputElement = r.expression(where, text)
		default:
			if !own && !silent[a.Name.Local] {
				r.warn(where, "", "%s is not read", a.Name.Local)
			}
		}
	}
	for _, x := range c.extensions() {
		if x.Space != zeebeNamespace || x.Local != "loopCharacteristics" {
			if x.Local != "failedJobRetryTimeCycle" || camundaNamespaces[x.Space] == "" {
				continue
			}
			r.warn(where, "", "failedJobRetryTimeCycle is not read: nothing is tried again by itself")
			continue
		}
		if text := x.attr("inputCollection"); text != "" {
			l.Collection = r.expression(where, text)
		}
		if text := x.attr("inputElement"); text != "" {
			l.Element = r.variable(where, "the element", text)
		}
		if text := x.attr("outputCollection"); text != "" {
			l.OutputCollection = r.variable(where, "the output collection", text)
		}
		if text := x.attr("outputElement"); text != "" {
			l.OutputElement = r.expression(where, text)
		}
	}
	if (l.OutputCollection == "") != (l.OutputElement == nil) {
		r.refuse(where, "", "an output collection and an output element belong together, and one of them is missing")
	}
}
