package bpmn

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// engines are the namespaces of other engines. What they write outside of extension elements
// is a part of the process.
var engines = []string{"http://www.jboss.org/drools", "http://spiffworkflow.org/", "http://www.omg.org/", "http://schema.omg.org/"}

// texts are the elements of BPMN whose text is an expression or an id. Another element in such
// a text would change what it means, so it is refused.
var texts = words(`script conditionExpression loopCondition loopCardinality completionCondition timeDate timeDuration timeCycle
	condition expression formalExpression from to transformation flowNodeRef eventDefinitionRef incoming outgoing`)

// An outsider is a name of elements of other namespaces. Each is reported once as refused and
// once as not read: a file may have many.
type outsider struct {
	xml.Name
	refused bool
}

// outside refuses an element of another namespace that is in no extension elements, or warns
// of it. One that may be a part of the process must not be lost: an element of an engine, one
// with a name of BPMN, one in an expression, and one without a namespace or with a prefix that
// is not declared. Go gives that prefix as the namespace; one that is declared is a URI.
func (p *parser) outside(name xml.Name, line int, parent *element) {
	parent.partial = true
	if texts[parent.Local] || !strings.Contains(name.Space, ":") || ofBPMN(name.Local) || ofEngine(name.Space) {
		p.refuse(name, line, Problem{
			Element: idOf(parent), Message: fmt.Sprintf("the element %.100s of the namespace %.100q is not known here", name.Local, name.Space),
			Hint: "the namespace of BPMN 2.0 is " + modelNamespace + "; elements of tools belong into bpmn:extensionElements",
		})
		return
	}
	if p.first(outsider{name, false}) && len(p.warning) < maxWarnings {
		p.warning = append(p.warning, Problem{Line: line, Element: idOf(parent), Message: fmt.Sprintf("the element %.100s of the namespace %.100q is not read", name.Local, name.Space)})
	}
}

// within refuses what is known here and is in an element of another tool, with which it would
// be lost.
func (p *parser) within(name, around xml.Name, line int) {
	if known(name.Space) {
		p.refuse(name, line, Problem{
			Message: fmt.Sprintf("the element %.100s is in the element %.100s of the namespace %.100q, which is not known here", name.Local, around.Local, around.Space),
			Hint:    "take it out of that element",
		})
	}
}

func (p *parser) refuse(name xml.Name, line int, problem Problem) {
	if p.first(outsider{name, true}) {
		problem.Line = line
		p.problem = append(p.problem, problem)
	}
}

func (p *parser) first(o outsider) bool {
	again := p.foreign[o]
	p.foreign[o] = true
	return !again
}

func ofEngine(space string) bool {
	return known(space) || slices.ContainsFunc(engines, func(engine string) bool { return strings.HasPrefix(space, engine) })
}

// ofBPMN reports whether an element of BPMN with this name says what a process does.
func ofBPMN(name string) bool {
	_, unsupported := unsupported[name]
	return kinds[name] != "" || unsupported || inNodes[name] || texts[name] || name == "process" || name == "sequenceFlow"
}
