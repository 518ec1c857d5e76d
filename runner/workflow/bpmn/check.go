package bpmn

import (
	"slices"
	"strings"
)

// check checks how the elements of a process fit together.
func (r *reader) check(p *Process) {
	r.process = p
	r.checkScope(&p.Scope, at{p.Line, p.ID, p.Name}, nil)
	each(&p.Scope, func(n *Node) {
		if n.Scope != nil {
			r.checkScope(n.Scope, atNode(n), n)
		}
	})
	r.checkCatchers(p)
	r.checkCompensation(p)
	r.process = nil
}

func (r *reader) checkScope(s *Scope, where at, parent *Node) {
	what := "the process"
	if parent != nil {
		what = "the sub-process"
	}
	if r.incomplete[s] { // starts, ends and cycles depend on what was refused
		r.links(s)
		for _, n := range s.Nodes {
			r.checkNode(n, parent)
		}
		return
	}
	if len(s.Nodes) == 0 {
		r.refuse(where, "", "%s is empty", what)
		return
	}
	r.checkStart(s, where, parent, what)
	r.links(s)
	ends := false
	for _, n := range s.Nodes {
		ends = ends || len(n.Out) == 0 && n.LinkTarget == nil && !n.aside()
		r.checkNode(n, parent)
	}
	if !ends {
		r.refuse(where, "draw an end event", "%s has no end: a flow leaves each of its elements", what)
	}
	r.checkCycles(s)
	r.checkReach(s)
}

// checkStart finds where tokens begin.
func (r *reader) checkStart(s *Scope, where at, parent *Node, what string) {
	var plain, triggered []*Node
	for _, n := range s.Nodes {
		switch {
		case n.Kind != StartEvent:
		case n.Event == nil:
			plain = append(plain, n)
		default:
			triggered = append(triggered, n)
		}
	}
	if parent != nil && parent.Triggered {
		r.checkTriggered(s, append(plain, triggered...), parent)
		return
	}
	for _, n := range triggered {
		switch {
		case parent != nil:
			r.refuse(atNode(n), "remove the trigger", "the start event of a sub-process has no trigger")
		case !n.Event.Kind.Waits():
			r.refuse(atNode(n), "", "only an event sub-process can begin with %s", article(n.Event.Kind))
		}
	}
	switch {
	case len(plain) > 1:
		r.refuse(atNode(plain[1]), "remove one of them", "%s has %d start events without a trigger: %s", what, len(plain), idsOf(plain))
	case len(plain) == 1:
		s.begin(plain[0])
		for _, n := range triggered {
			if parent == nil {
				r.warn(atNode(n), "", "nothing begins at this start event: a run begins at %s", plain[0].ID)
			}
		}
	case len(triggered) > 1:
		r.refuse(atNode(triggered[1]), "add a start event without a trigger", "%s has %d start events with a trigger, and no other: %s", what, len(triggered), idsOf(triggered))
	case len(triggered) == 1:
		s.begin(triggered[0])
		if parent == nil {
			r.warn(atNode(s.Start), "", "a run begins here at once: it does not wait for the %s of its start event", s.Start.Event.Kind)
		}
	default:
		r.checkRoots(s, where, what)
	}
}

// begin makes a start event the only place where a token begins.
func (s *Scope) begin(start *Node) { s.Start, s.Starts = start, []*Node{start} }

// maxStarts is how many tokens begin at once in a scope without a start event.
const maxStarts = 1000

// checkRoots finds where tokens begin without a start event.
func (r *reader) checkRoots(s *Scope, where at, what string) {
	var roots []*Node
	for _, n := range s.Nodes {
		if n.root() {
			roots = append(roots, n)
		}
	}
	waits := slices.IndexFunc(roots, func(n *Node) bool { return n.instantiates })
	switch {
	case len(roots) == 0:
		r.refuse(where, "draw one", "%s has no start event, and nothing else where it could begin", what)
	case len(roots) > maxStarts:
		r.refuse(where, "draw a start event", "%s has no start event, and no flow leads to %d of its elements; it can begin at %d at most", what, len(roots), maxStarts)
	case waits >= 0 && len(roots) > 1:
		r.refuse(atNode(roots[waits]), "draw a start event", "%s has no start event, and begins either with the event of this element or at another one: %s", what, idsOf(roots))
	default:
		s.Starts = roots
		r.warn(where, "draw one, if that is not meant", "%s has no start event, so it begins at each element to which no flow leads: %s", what, idsOf(roots))
	}
}

// root reports whether an element gets a token if its scope has no start event. An end event
// without a flow does not: nothing comes to its end there.
func (n *Node) root() bool {
	switch {
	case len(n.In) > 0, n.aside(), n.Kind == BoundaryEvent, n.Kind == EndEvent:
		return false
	}
	return n.Kind != CatchEvent || n.Event == nil || n.Event.Kind != LinkEvent
}

func (r *reader) checkTriggered(s *Scope, starts []*Node, parent *Node) {
	if len(starts) != 1 {
		r.refuse(atNode(parent), "", "an event sub-process has exactly one start event, not %d", len(starts))
		return
	}
	s.begin(starts[0])
	if s.Start.Event == nil {
		r.refuse(atNode(s.Start), "choose a message, a timer, an error, an escalation, a signal or compensation", "the start event of an event sub-process needs a trigger")
	}
}

// IDs returns the ids of elements.
func IDs(nodes []*Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.ID
	}
	return out
}

// idsOf names elements in a sentence, ten at most.
func idsOf(nodes []*Node) string {
	if len(nodes) > 10 {
		return strings.Join(IDs(nodes[:10]), ", ") + ", …"
	}
	return strings.Join(IDs(nodes), ", ")
}

// links connects the throwing link events of a scope with the catching ones.
func (r *reader) links(s *Scope) {
	catch, used := map[string]*Node{}, map[string]bool{}
	name := func(n *Node) string { return n.Event.Name.Text }
	for _, n := range s.Nodes {
		if n.Kind == CatchEvent && n.Event != nil && n.Event.Kind == LinkEvent {
			if other := catch[name(n)]; other != nil {
				r.refuse(atNode(n), "give each a name of its own", "two events catch the link %q: %s and %s", name(n), other.ID, n.ID)
			}
			catch[name(n)] = n
			if len(n.In) > 0 {
				r.refuse(atNode(n), "remove the flow", "a flow leads to an event that catches a link")
			}
		}
	}
	for _, n := range s.Nodes {
		if n.Kind != ThrowEvent || n.Event == nil || n.Event.Kind != LinkEvent {
			continue
		}
		if len(n.Out) > 0 {
			r.refuse(atNode(n), "remove the flow: the token continues at the event that catches the link", "a flow leaves an event that throws a link")
		}
		used[name(n)] = true
		if n.LinkTarget = catch[name(n)]; n.LinkTarget == nil {
			r.refuse(atNode(n), "draw an intermediate event that catches the link, in the same process or sub-process", "no event catches the link %q", name(n))
		}
	}
}

func (r *reader) checkNode(n *Node, parent *Node) {
	where := atNode(n)
	switch {
	case n.Kind == StartEvent && len(n.In) > 0:
		r.refuse(where, "", "a flow leads to a start event")
	case n.Kind == EndEvent && len(n.Out) > 0:
		r.refuse(where, "use an intermediate throw event", "a flow leaves an end event")
	case n.Kind == BoundaryEvent && len(n.In) > 0:
		r.refuse(where, "", "a flow leads to a boundary event")
	case n.Triggered && len(n.In)+len(n.Out) > 0:
		r.refuse(where, "", "an event sub-process has no flows")
	case n.Triggered && len(n.Boundary) > 0:
		r.refuse(where, "", "an event sub-process has no boundary events")
	case n.Triggered && n.Loop != nil:
		r.refuse(where, "", "an event sub-process does not repeat")
	case n.Kind == StartEvent && n.Form != nil && (parent != nil || n.Process != r.Main):
		r.warn(where, "", "the form is not shown: only that of the start event where a run begins is")
	}
	if len(n.Out) == 0 && !n.aside() && n.Kind != EndEvent && n.LinkTarget == nil && (n.Event == nil || n.Event.Kind != LinkEvent) {
		r.warn(where, "", "no flow leaves the element, so the branch ends here")
	}
	switch n.Kind {
	case EventBasedGateway:
		r.checkEventBased(n)
	case ExclusiveGateway, InclusiveGateway:
		r.checkChoice(n)
	case ParallelGateway:
		for _, f := range n.Out {
			if f.Condition != nil {
				r.warn(at{f.Line, f.ID, f.Name}, "use an inclusive gateway", "the condition is not evaluated: a parallel gateway takes every flow")
			}
		}
	}
	if n.Default != nil && n.Default.Condition != nil {
		r.warn(at{n.Default.Line, n.Default.ID, n.Default.Name}, "", "the condition is not evaluated, because the flow is the default")
	}
	if n.Default != nil && (n.Kind == ParallelGateway || n.Kind == EventBasedGateway) {
		r.warn(where, "", "the default flow has no meaning here")
	}
}

func (r *reader) checkEventBased(n *Node) {
	if len(n.Out) == 0 {
		r.refuse(atNode(n), "", "no flow leaves the event-based gateway")
	}
	for _, f := range n.Out {
		t := f.To
		catches := t.Kind == CatchEvent && t.Event != nil && t.Event.Kind != LinkEvent || t.Kind == ReceiveTask
		switch {
		case !catches:
			r.refuse(at{f.Line, f.ID, f.Name}, "let it lead to events that wait for a message, a timer or a signal, or to receive tasks", "a flow of the event-based gateway %s leads to %s, which waits for no event", n.ID, t.ID)
		case len(t.In) > 1:
			r.refuse(atNode(t), "", "an event after the event-based gateway %s has another incoming flow", n.ID)
		case len(t.Boundary) > 0:
			r.refuse(atNode(t), "", "a receive task after an event-based gateway has no boundary events")
		}
		if f.Condition != nil {
			r.refuse(at{f.Line, f.ID, f.Name}, "", "a flow of an event-based gateway has no condition")
		}
	}
}

// checkChoice warns of flows that are always taken: sketches have them, but they are
// rarely meant.
func (r *reader) checkChoice(n *Node) {
	if len(n.Out) < 2 {
		return
	}
	for i, f := range n.Out {
		if f.Condition != nil || f == n.Default {
			continue
		}
		where := at{f.Line, f.ID, f.Name}
		switch {
		case n.Kind == InclusiveGateway:
			r.warn(where, "add a condition, or make it the default flow", "the flow has no condition, so it is always taken")
		case i < len(n.Out)-1:
			r.warn(where, "add a condition, or make it the default flow", "the flow has no condition, so it is taken whenever the flows before it are not, and the flows after it never are")
			return
		default:
			r.warn(where, "make it the default flow, to say so", "the flow has no condition, so it is taken if no other is")
		}
	}
}

// rests reports whether a token stops at a node, or whether the node can change a
// variable. A cycle needs one such node, or nothing ever ends it.
func (n *Node) rests() bool {
	if n.Agent != nil || n.Script != nil || len(n.Inputs)+len(n.Outputs) > 0 || n.Loop != nil {
		return true
	}
	switch n.Kind {
	case UserTask, ReceiveTask, SubProcess, CallActivity, EventBasedGateway:
		return true
	case CatchEvent:
		return n.Event == nil || n.Event.Kind != LinkEvent
	}
	return false
}

// checkCycles refuses cycles in which no token ever stops and no variable changes.
func (r *reader) checkCycles(s *Scope) {
	const open, done = 1, 2
	state := map[*Node]int{}
	for _, start := range s.Nodes {
		if state[start] != 0 || start.rests() {
			continue
		}
		// A stack of our own: a chain may have as many elements as the file.
		type frame struct {
			n    *Node
			next []*Node
		}
		stack := []frame{{start, after(start)}}
		state[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.n] = done
				stack = stack[:len(stack)-1]
				continue
			}
			n := top.next[0]
			top.next = top.next[1:]
			switch {
			case n.rests() || state[n] == done:
			case state[n] == open:
				var path []*Node
				for _, f := range stack[slices.IndexFunc(stack, func(f frame) bool { return f.n == n }):] {
					path = append(path, f.n)
				}
				r.refuseCycle(path)
				state[n] = done
			default:
				state[n] = open
				stack = append(stack, frame{n, after(n)})
			}
		}
	}
}

func (r *reader) refuseCycle(path []*Node) {
	r.refuse(atNode(path[0]), "put a task into it that works, waits or sets a variable, such as a user task, a timer or a script task",
		"the cycle %s never ends: nothing in it waits or changes a variable", idsOf(path))
}

// after returns the nodes that a token can enter after n.
func after(n *Node) []*Node {
	var out []*Node
	for _, f := range n.Out {
		out = append(out, f.To)
	}
	if n.LinkTarget != nil {
		out = append(out, n.LinkTarget)
	}
	return out
}

// checkReach warns of elements that no token can enter.
func (r *reader) checkReach(s *Scope) {
	if s.Starts == nil {
		return
	}
	seen, queue := map[*Node]bool{}, slices.Clone(s.Starts)
	for _, n := range queue {
		seen[n] = true
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, next := range append(after(n), n.Boundary...) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	for _, n := range s.Nodes {
		if !seen[n] && !n.aside() && n.Kind != StartEvent {
			r.warn(atNode(n), "", "no flow leads from the start to the element, so it never runs")
		}
	}
}
