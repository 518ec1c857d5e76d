package bpmn

import (
	"strings"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// silent are attributes and elements of Camunda 7, Flowable and Activiti that change
// nothing for a run here: every step is durable, and nobody is kept from anything.
var silent = words(`asyncBefore asyncAfter async exclusive historyTimeToLive isStartableInTasklist versionTag
	candidateStarterUsers candidateStarterGroups modelerTemplate modelerTemplateVersion modelerTemplateIcon
	topic collection elementVariable elementIndexVariable calledElementType sameDeployment
	potentialStarter in out properties inputOutput formData formProperty formFieldValidation
	calledElementBinding calledElementTenantId`)

// zeebeSilent are those of Camunda 8.
var zeebeSilent = words(`userTask versionTag taskHeaders properties subscription userTaskForm loopCharacteristics modelerTemplate`)

// programs are attributes that name a program in the memory of another engine.
var programs = map[string]string{
	"decisionRef":          "a decision table (DMN)",
	"variableMappingClass": "a Java class",
	"customClass":          "a Java class",
}

// camundaAttributes reads the attributes of Camunda 7 and of its relatives.
func (r *reader) camundaAttributes(e *element, n *Node, p *parts) {
	where := atNode(n)
	for _, a := range e.attrs {
		if camundaNamespaces[a.Name.Space] == "" {
			continue
		}
		text := strings.TrimSpace(a.Value)
		switch name := a.Name.Local; {
		case programs[name] != "":
			r.refuse(where, "use an agent, or a script task", "the task runs %s (%s), which is not possible here", programs[name], name)
		case n.Kind.works() && (name == "class" || name == "delegateExpression"):
			r.delegate(where, text, p)
		case name == "class" || name == "delegateExpression":
			r.refuse(where, "use a task before it", "%s runs a program (%s), which is not possible here", article(n.Kind), name)
		case name == "expression":
			n.Script = r.lines(where, text)
		case name == "type":
			r.camundaType(e, where, text, p)
		case name == "resultVariable" || name == "resultVariableName":
			p.values["resultVariable"] = text
		case name == "assignee":
			n.Assignee = text
		case name == "candidateUsers":
			n.CandidateUsers = text
		case name == "candidateGroups":
			n.CandidateGroups = text
		case name == "formKey", name == "formRef":
			r.warn(where, "draw the fields as generated task form, or as tapedeck:form", "the form %q is not read", text)
		case !silent[name]:
			r.warn(where, "", "%s is not read", name)
		}
	}
	for _, d := range e.children {
		for _, a := range d.attrs {
			if n.Event == nil || camundaNamespaces[a.Name.Space] == "" || !strings.HasSuffix(d.Local, "EventDefinition") {
				continue
			}
			switch {
			case n.Event.Kind.Propagates() && a.Name.Local == string(n.Event.Kind)+"CodeVariable":
				n.Event.CodeVariable = r.variable(where, "the "+string(n.Event.Kind)+" code", a.Value)
			case n.Event.Kind == ErrorEvent && a.Name.Local == "errorMessageVariable":
				n.Event.MessageVariable = r.variable(where, "the error message", a.Value)
			case programs[a.Name.Local] != "", a.Name.Local == "expression":
				r.refuse(where, "send the message with an agent before the event", "the event runs a program (%s), which is not possible here", a.Name.Local)
			case a.Name.Local == "topic" || a.Name.Local == "type":
				r.warn(where, "", "the external worker of the event is not called; the event happens at once")
			case !silent[a.Name.Local]:
				r.warn(where, "", "%s is not read", a.Name.Local)
			}
		}
	}
}

// camundaType reads the type of a service task, with the topic of an external one.
func (r *reader) camundaType(e *element, where at, text string, p *parts) {
	if text != "external" && text != "external-worker" {
		r.refuse(where, "use an agent with tools", "tasks of the type %q are not supported", text)
		return
	}
	p.worked = true
	for _, a := range e.attrs {
		if camundaNamespaces[a.Name.Space] != "" && a.Name.Local == "topic" {
			p.work = strings.TrimSpace(a.Value)
		}
	}
	if p.work == "" {
		r.refuse(where, `write camunda:topic="agent:NAME"`, "the external task has no topic")
	}
}

// delegate reads the name of a program of Java. Its work is that of an agent: a run says of
// which one.
func (r *reader) delegate(where at, text string, p *parts) {
	name := strings.TrimSpace(text)
	if inner, ok := strings.CutSuffix(name, "}"); ok && strings.ContainsAny(name[:1], "$#") {
		name = strings.TrimSpace(strings.TrimPrefix(inner[1:], "{"))
	}
	p.worked, p.work = true, name
	r.warn(where, "a run gives the work to an agent, for example with: --agent "+name+"=coder", "the program of Java is not run; %q is the type of the work of an agent", name)
}

// camundaElement reads an extension element of Camunda 7 and of its relatives.
func (r *reader) camundaElement(x *element, n *Node, p *parts) {
	where := at{x.line, n.ID, n.Name}
	switch x.Local {
	case "inputOutput":
		r.inputOutput(x, n, p)
	case "properties":
		for _, c := range x.children {
			name := c.attr("name")
			if name == "" {
				name = c.attr("key")
			}
			p.set(name, c.attr("value"), c.line, true)
		}
	case "formData":
		r.camundaForm(x, n)
	case "formProperty":
		r.formProperty(x, n)
	case "in", "out":
		r.camundaPass(x, n, where)
	case "executionListener", "taskListener":
		r.warn(where, "use a script task beside it", "the listener (%s) is not run", x.attr("event"))
	case "failedJobRetryTimeCycle":
		r.warn(where, "draw an error boundary event", "failedJobRetryTimeCycle is not read: nothing is tried again by itself")
	case "connector":
		r.refuse(where, "use an agent with tools", "connectors are not supported")
	case "field":
		r.warn(where, "", "the field %q of a Java class is not read", x.attr("name"))
	default:
		if !silent[x.Local] {
			r.warn(where, "", "%s is not read", x.Local)
		}
	}
}

// inputOutput reads the parameters of Camunda 7.
func (r *reader) inputOutput(x *element, n *Node, p *parts) {
	for _, c := range x.children {
		where := at{c.line, n.ID, n.Name}
		if c.Local != "inputParameter" && c.Local != "outputParameter" {
			r.warn(where, "", "%s is not read", c.Local)
			continue
		}
		if len(c.children) > 0 {
			r.refuse(where, "write the value as an expression, for example ${[a, b]}", "a parameter with a %s in it is not supported", c.children[0].Local)
			continue
		}
		m := Mapping{Target: r.variable(where, "the parameter", c.attr("name")), Source: r.compiled(where, expression.ParseJUEL, c.content()), Line: c.line}
		if c.Local == "inputParameter" {
			n.Inputs = append(n.Inputs, m)
			p.set(m.Target, c.content(), c.line, true)
		} else {
			n.Outputs = append(n.Outputs, m)
		}
	}
}

// camundaPass reads which variables a call activity passes.
func (r *reader) camundaPass(x *element, n *Node, where at) {
	if n.Kind != CallActivity {
		r.warn(where, "", "%s is not read outside of call activities", x.Local)
		return
	}
	if x.attr("businessKey") != "" {
		r.warn(where, "", "businessKey is not read")
		return
	}
	if x.attr("variables") == "all" {
		if x.Local == "in" {
			n.PassIn = true
		} else {
			n.PassOut = true
		}
		return
	}
	source := x.attr("source")
	if source == "" {
		source = x.attr("sourceExpression")
	}
	m := Mapping{Target: r.variable(where, "the target", x.attr("target")), Source: r.expression(where, source), Line: x.line}
	if x.Local == "in" {
		n.Inputs = append(n.Inputs, m)
	} else {
		n.Outputs = append(n.Outputs, m)
	}
}

// connectorPrefix is the beginning of the job types of Camunda's connectors.
const connectorPrefix = "io.camunda"

// zeebeElement reads an extension element of Camunda 8.
func (r *reader) zeebeElement(x *element, n *Node, p *parts) {
	where := at{x.line, n.ID, n.Name}
	switch x.Local {
	case "taskDefinition":
		p.worked, p.work = true, x.attr("type")
		if strings.HasPrefix(p.work, connectorPrefix) {
			r.refuse(where, "use an agent with tools", "connectors are not supported: %s", p.work)
		}
		if retries := x.attr("retries"); retries != "" && retries != "3" {
			r.warn(where, "draw an error boundary event", "retries is not read: nothing is tried again by itself")
		}
	case "ioMapping":
		r.zeebeMapping(x, n, p)
	case "taskHeaders", "properties":
		for _, c := range x.children {
			name := c.attr("key")
			if name == "" {
				name = c.attr("name")
			}
			p.set(name, c.attr("value"), c.line, false)
			if name == "inbound.type" && strings.HasPrefix(c.attr("value"), connectorPrefix) {
				r.warn(at{c.line, n.ID, n.Name}, "send the message over the HTTP API, or with: tapedeck workflow message", "the connector %s is not run", c.attr("value"))
			}
		}
	case "script":
		n.Script = r.lines(where, x.attr("expression"))
		p.values["resultVariable"] = x.attr("resultVariable")
	case "calledDecision":
		r.refuse(where, "use an agent, or a script task", "the task runs a decision table (DMN), which is not possible here")
	case "assignmentDefinition":
		n.Assignee, n.CandidateUsers, n.CandidateGroups = x.attr("assignee"), x.attr("candidateUsers"), x.attr("candidateGroups")
	case "formDefinition":
		r.zeebeForm(x, n)
	case "executionListeners", "taskListeners":
		r.warn(where, "use a script task beside it", "the listeners are not run")
	case "calledElement":
	default:
		if !zeebeSilent[x.Local] {
			r.warn(where, "", "%s is not read", x.Local)
		}
	}
}

func (r *reader) zeebeMapping(x *element, n *Node, p *parts) {
	for _, c := range x.children {
		where := at{c.line, n.ID, n.Name}
		m := Mapping{Target: c.attr("target"), Source: r.value(where, c.attr("source")), Line: c.line}
		switch c.Local {
		case "input":
			m.Target = r.variable(where, "the target", m.Target)
			n.Inputs = append(n.Inputs, m)
			p.set(m.Target, c.attr("source"), c.line, false)
		case "output":
			m.Target = r.variable(where, "the target", m.Target)
			n.Outputs = append(n.Outputs, m)
		default:
			r.warn(where, "", "%s is not read", c.Local)
		}
	}
}

// processExtensions warns of what a process asks of other engines.
func (r *reader) processExtensions(e *element) {
	where := atElement(e)
	for _, a := range e.attrs {
		if camundaNamespaces[a.Name.Space] != "" && !silent[a.Name.Local] {
			r.warn(where, "", "%s is not read", a.Name.Local)
		}
	}
	for _, x := range e.extensions() {
		switch {
		case x.Space == zeebeNamespace && zeebeSilent[x.Local], x.Space == tapedeckNamespace, silent[x.Local]:
		case strings.HasSuffix(x.Local, "istener"), strings.HasSuffix(x.Local, "isteners"):
			r.warn(at{x.line, where.id, where.name}, "use a script task", "the listener is not run")
		default:
			r.warn(at{x.line, where.id, where.name}, "", "%s is not read", x.Local)
		}
	}
}

// call reads which process a call activity runs, and what it passes.
func (r *reader) call(e *element, n *Node) {
	n.CalledProcess = calledBy(e)
	n.PassIn, n.PassOut = true, true
	for _, x := range e.extensions() {
		switch {
		case x.Space == zeebeNamespace && x.Local == "calledElement":
			n.PassIn = r.flag(x, at{x.line, n.ID, n.Name}, "propagateAllParentVariables", true)
			n.PassOut = r.flag(x, at{x.line, n.ID, n.Name}, "propagateAllChildVariables", true)
		case camundaNamespaces[x.Space] != "" && x.Local == "in" && x.attr("businessKey") == "":
			n.PassIn = false // until variables="all" is read
		case camundaNamespaces[x.Space] != "" && x.Local == "out":
			n.PassOut = false
		}
	}
	if strings.HasPrefix(n.CalledProcess, "=") || strings.ContainsAny(n.CalledProcess, "${}") {
		r.refuse(atNode(n), "write the id of the process", "the call activity computes which process it runs, which is not supported")
		n.CalledProcess = ""
	}
}
