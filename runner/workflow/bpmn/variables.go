package bpmn

import (
	"iter"
	"slices"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// loopVariables are those that the engine sets in loops and multi-instance activities.
var loopVariables = words(`loopCounter nrOfInstances nrOfCompletedInstances nrOfActiveInstances
	numberOfInstances numberOfCompletedInstances numberOfActiveInstances`)

// Missing returns the places that use a variable which nothing can set: no script, agent,
// form, mapping, loop or caught error of the processes that a run reaches. Given reports
// whether the run has a variable from its start. The order of the elements does not count,
// except that an element cannot use what only it sets, later.
//
// FromMessage says that a message may still bring the variables: a run reaches an element
// that waits for one, and messages carry any variables.
func (d *Definitions) Missing(given func(name string) bool) (problems []Problem, fromMessage bool) {
	c := &variableCheck{given: given, start: d.Main.Start, set: map[string]*Node{}, own: map[*Node]map[string]bool{}}
	reached := d.Reached()
	for n := range reached {
		c.collect(n)
		fromMessage = fromMessage || n.Event != nil && n.Event.Kind == MessageEvent && n.catches() && n != d.Main.Start
	}
	for n := range reached {
		c.check(n)
	}
	sortProblems(c.problems)
	return c.problems, fromMessage
}

// CheckVariables returns what [Definitions.Missing] finds as an [*Error]. It is nil if
// messages can bring the variables.
func (d *Definitions) CheckVariables(given func(name string) bool) error {
	problems, fromMessage := d.Missing(given)
	if fromMessage {
		return nil
	}
	return errorOf(problems)
}

// A WantedVariable is one that elements use and none sets.
type WantedVariable struct {
	Name    string
	Element string // where it is used first
	Line    int

	FromMessage bool // a message may bring it: a run begins without it
}

// Wanted returns the variables that a run has to give beside those of the form of its
// start, or that messages have to bring.
func (d *Definitions) Wanted() (wanted []WantedVariable) {
	fields := map[string]bool{}
	if d.Main.Start != nil {
		for name := range d.Main.Start.fieldNames(false) {
			fields[name] = true
		}
	}
	problems, fromMessage := d.Missing(func(name string) bool { return fields[name] })
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.variable] && len(seen) < maxWarnings {
			seen[p.variable] = true
			wanted = append(wanted, WantedVariable{p.variable, p.Element, p.Line, fromMessage})
		}
	}
	return wanted
}

// catches reports whether an element waits for its event.
func (n *Node) catches() bool {
	return n.Kind == CatchEvent || n.Kind == BoundaryEvent || n.Kind == ReceiveTask || n.Kind == StartEvent
}

// A variableCheck compares the variables that elements use with those that elements set.
type variableCheck struct {
	given    func(name string) bool
	start    *Node                     // of the run, nil for none: a run gives its fields, or does not
	set      map[string]*Node          // the element that sets a variable for others; nil if several do
	own      map[*Node]map[string]bool // the variables that only an element and what is in it see
	problems []Problem
}

func (c *variableCheck) collect(n *Node) {
	add := func(name string, by *Node) {
		if other, has := c.set[name]; has && other != by {
			by = nil
		}
		c.set[name] = by
	}
	own := n.ownVariables()
	if len(own) > 0 {
		c.own[n] = own
	}
	if n.Kind == CallActivity || n.Handler != nil { // the called process, or the handler, sees them
		for name := range own {
			add(name, nil)
		}
	}
	if n == c.start {
		return
	}
	for name := range n.leaving() {
		add(name, n)
	}
}

// ownVariables returns the variables that an element has for itself.
func (n *Node) ownVariables() map[string]bool {
	own := map[string]bool{}
	for i := range n.Inputs {
		own[n.Inputs[i].Target] = true
	}
	if n.Loop == nil {
		return own
	}
	for name := range loopVariables {
		own[name] = true
	}
	own[n.Loop.Element] = true
	return own
}

// sets yields the variables that an element sets by its work.
func (n *Node) sets() iter.Seq[string] {
	return func(yield func(string) bool) {
		var names []string
		if n.Script != nil {
			names = append(n.Script.Lines.Assigned(), n.Script.Result)
		}
		if n.Agent != nil {
			names = append(names, n.Agent.Output)
		}
		if n.Event != nil {
			names = append(names, n.Event.CodeVariable, n.Event.MessageVariable)
		}
		names = slices.AppendSeq(names, n.fieldNames(true))
		for _, name := range names {
			if name != "" && !yield(name) {
				return
			}
		}
	}
}

// fieldNames yields the fields of a form, or only those that people can fill in.
func (n *Node) fieldNames(filled bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; n.Form != nil && i < len(n.Form.Fields); i++ {
			if f := &n.Form.Fields[i]; (!filled || !f.ReadOnly || n.Kind == StartEvent) && !yield(f.ID) {
				return
			}
		}
	}
}

// leaving yields the variables that an element sets for others.
func (n *Node) leaving() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n.Outputs {
			if !yield(n.Outputs[i].Target) {
				return
			}
		}
		collects := n.Loop != nil && n.Loop.OutputCollection != ""
		if collects && !yield(n.Loop.OutputCollection) || collects || len(n.Outputs) > 0 {
			return
		}
		n.sets()(yield)
	}
}

// check checks all that an element evaluates.
func (c *variableCheck) check(n *Node) {
	c.before(n)
	c.after(n)
	for _, f := range n.Out {
		if f.Condition == nil || f == n.Default || n.Kind == ParallelGateway {
			continue
		}
		has := func(name string) bool { return c.visible(n.Parent, name) }
		c.uses(Problem{Line: f.Line, Element: f.ID, Name: f.Name, in: n.Process}, f.Condition.Uses(), has)
	}
}

// before checks what is evaluated before an element has done its work. What only the
// element itself sets does not exist then.
func (c *variableCheck) before(n *Node) {
	outside := func(name string) bool { return c.visible(n.Parent, name) && !c.onlyBy(n, name) }
	inside := func(name string) bool { return c.own[n][name] || outside(name) }
	if l := n.Loop; l != nil {
		c.values(n, l.Line, outside, l.Collection, l.Cardinality)
	}
	inputs := map[string]bool{}
	for _, m := range n.Inputs {
		loop := func(name string) bool { return n.Loop != nil && (loopVariables[name] || n.Loop.Element == name) }
		c.values(n, m.Line, func(name string) bool { return inputs[name] || loop(name) || outside(name) }, m.Source)
		inputs[m.Target] = true
	}
	if n.Agent != nil {
		c.values(n, n.Agent.Line, inside, n.Agent.Prompt)
	}
	if n.Script != nil {
		c.uses(problemAt(n, n.Line), n.Script.Lines.Uses(), inside)
	}
	if n.Form != nil {
		for i := range n.Form.Fields {
			c.values(n, n.Form.Fields[i].Line, inside, n.Form.Fields[i].Default)
		}
	}
	if n.Event != nil && n != c.start {
		c.event(n, inside)
	}
}

// event checks what an element waits for or throws. An event at the boundary sees what its
// activity sees.
func (c *variableCheck) event(n *Node, has func(name string) bool) {
	if n.AttachedTo != nil {
		has = func(name string) bool { return c.visible(n.AttachedTo, name) && !c.onlyBy(n, name) }
	}
	c.values(n, n.Line, has, n.Event.Name, n.Event.Correlation)
	if t := n.Event.Timer; t != nil {
		c.values(n, t.Line, has, t.Value)
	}
}

// after checks what is evaluated when an element has done its work.
func (c *variableCheck) after(n *Node) {
	if len(n.Outputs) == 0 && n.Loop == nil {
		return
	}
	done := map[string]bool{}
	for name := range n.sets() {
		done[name] = true
	}
	if n.Agent != nil {
		done[ResultVariable] = true
	}
	has := func(name string) bool { return done[name] || c.visible(n, name) }
	for _, m := range n.Outputs {
		c.values(n, m.Line, has, m.Source)
		done[m.Target] = true
	}
	if l := n.Loop; l != nil {
		c.values(n, l.Line, has, l.OutputElement)
		if l.Condition != nil {
			c.uses(problemAt(n, l.Line), l.Condition.Uses(), has)
		}
	}
}

// visible reports whether an element, or what is in it, may see a variable.
func (c *variableCheck) visible(n *Node, name string) bool {
	if _, has := c.set[name]; has || c.given(name) {
		return true
	}
	for ; n != nil; n = n.Parent {
		if c.own[n][name] {
			return true
		}
	}
	return false
}

// onlyBy reports whether a variable comes from nothing but the work of one element.
func (c *variableCheck) onlyBy(n *Node, name string) bool {
	return c.set[name] == n && n != nil && !c.given(name)
}

func (c *variableCheck) values(n *Node, line int, has func(name string) bool, values ...*expression.Value) {
	for _, v := range values {
		if v != nil {
			c.uses(problemAt(n, line), v.Uses(), has)
		}
	}
}

func problemAt(n *Node, line int) Problem {
	return Problem{Line: line, Element: n.ID, Name: n.Name, in: n.Process}
}

// uses adds a problem for each variable that does not exist.
func (c *variableCheck) uses(where Problem, uses []expression.Use, has func(name string) bool) {
	for _, u := range uses {
		if has(u.Variable) {
			continue
		}
		where.variable, where.Message = u.Variable, u.String()
		where.Hint = "set it before, or give it when you run the workflow; for a variable that may be missing, write " + u.Variable + ` ?? "none", or compare it with null`
		c.problems = append(c.problems, where)
	}
}
