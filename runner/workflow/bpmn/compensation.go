package bpmn

import "iter"

// This file connects activities with what compensates them (BPMN 2.0, 13.5.5). An association,
// which is only drawn otherwise, leads from a compensation event at a boundary to its handler.

// associationsIn returns the targets of all associations of a file, by their source. They may be
// in a process, a sub-process or a collaboration.
func associationsIn(root *element) map[string][]string {
	out := map[string][]string{}
	root.each(func(e *element) {
		if e.Space == modelNamespace && e.Local == "association" {
			from := local(e.attr("sourceRef"))
			out[from] = append(out[from], local(e.attr("targetRef")))
		}
	})
	return out
}

// compensation reads what an event throws; one that catches says no more.
func (r *reader) compensation(d *element, n *Node) {
	where := at{d.line, n.ID, n.Name}
	switch {
	case n.Kind == StartEvent && !n.Interrupting:
		r.refuse(where, "let it interrupt", "an event sub-process for compensation always interrupts")
	case n.Kind == StartEvent || n.Kind == BoundaryEvent:
		if d.attr("activityRef") != "" {
			r.warn(where, "", "activityRef is not read: the event is of the activity to which it belongs")
		}
	default:
		n.Event.activityRef = local(d.attr("activityRef"))
		n.Event.GoesOn = n.Kind == ThrowEvent && !d.is("waitForCompletion", true)
	}
}

// aside reports whether no flow leads to or from an element, because no token reaches it by
// itself.
func (n *Node) aside() bool {
	return n.Triggered || n.ForCompensation || n.Kind == BoundaryEvent && n.Event != nil && n.Event.Kind == CompensationEvent
}

// compensates reports whether an element is an event sub-process that compensates.
func (n *Node) compensates() bool {
	event := n.CatchEvent()
	return n.Triggered && event != nil && event.Kind == CompensationEvent
}

// checkCompensation finds what compensates the activities of a process, and what its events
// compensate.
func (r *reader) checkCompensation(p *Process) {
	var catching, throwing []*Node
	handlers := map[*Node]bool{}
	each(&p.Scope, func(n *Node) {
		switch event := n.CatchEvent(); {
		case n.Kind == BoundaryEvent && n.aside():
			catching = append(catching, n)
			if h := r.handler(n); h != nil {
				handlers[h] = true
			}
		case event != nil && event.Kind == CompensationEvent:
			catching = append(catching, n)
		case n.ThrowsCompensation():
			throwing = append(throwing, n)
		}
	})
	each(&p.Scope, func(n *Node) {
		if n.ForCompensation {
			r.checkHandler(n, handlers[n])
		}
	})
	first := map[*Node]*Node{} // by what is around them
	for _, n := range catching {
		if n.Triggered {
			if first[n.Parent] == nil {
				first[n.Parent] = n
			}
			r.checkCompensating(n, first[n.Parent])
		}
		if len(throwing) == 0 {
			r.warn(atNode(n), "draw an event that throws compensation", "the event never happens: nothing in the process throws compensation")
		}
	}
	if len(throwing) > 0 {
		markCompensable(&p.Scope)
	}
	for _, n := range throwing {
		r.checkThrown(n)
	}
}

// handler returns the activity to which a compensation event at a boundary leads, nil if
// there is none.
func (r *reader) handler(event *Node) *Node {
	var found []*Node
	for _, id := range r.associations[event.ID] {
		if r.lost[id] {
			return nil
		}
		if n := r.elements[id]; n != nil { // otherwise it leads to an annotation
			found = append(found, n)
		}
	}
	if len(event.Out) > 0 {
		r.refuse(atNode(event), "draw an association to the activity that compensates", "a flow leaves a compensation event at a boundary")
	}
	host := event.AttachedTo
	switch {
	case len(found) == 0:
		r.refuse(atNode(event), "draw an association from it to an activity that is marked for compensation", "no association leads from the compensation event to an activity")
	case len(found) > 1:
		r.refuse(atNode(event), "let it lead to a sub-process with all that compensates", "associations lead from the compensation event to several elements: %s", idsOf(found))
	case !found[0].ForCompensation:
		r.refuse(atNode(event), `set isForCompensation="true" there`, "an association leads from the compensation event to %s, which is not marked for compensation", found[0].ID)
	case found[0].Parent != event.Parent || found[0].Process != event.Process:
		r.refuse(atNode(event), "move it beside the event", "an association leads from the compensation event to %s, which is in another process or sub-process", found[0].ID)
	case host == nil: // it is attached to nothing
	case host.Handler != nil:
		r.refuse(atNode(event), "remove one of them", "%s has several compensation events at its boundary", host.ID)
	default:
		host.Handler = found[0]
		return found[0]
	}
	return nil
}

// checkHandler checks an activity that is marked for compensation.
func (r *reader) checkHandler(n *Node, used bool) {
	switch {
	case n.Triggered:
		r.refuse(atNode(n), "let it begin with a compensation event", "an event sub-process is not marked for compensation")
	case len(n.In)+len(n.Out) > 0:
		r.refuse(atNode(n), "remove the flows", "an activity that is marked for compensation has no flows")
	case len(n.Boundary) > 0:
		r.refuse(atNode(n), "put it into a sub-process that is marked for compensation", "events at the boundary of an activity that is marked for compensation are not supported")
	case !used:
		r.warn(atNode(n), "draw an association to it from a compensation event", "no compensation event leads to the activity, so it never runs")
	}
}

// checkCompensating checks an event sub-process that compensates what is around it. Only the
// first one there can.
func (r *reader) checkCompensating(n, first *Node) {
	around := n.Parent
	switch {
	case around == nil:
		r.refuse(atNode(n), "put it into a sub-process", "nothing compensates the process, so its event sub-process for compensation never begins")
	case around.ForCompensation || around.compensates():
		r.refuse(atNode(n), "", "nothing compensates %s, so its event sub-process for compensation never begins", around.ID)
	case around.Handler != nil:
		r.refuse(atNode(n), "remove one of them", "%s and the event sub-process compensate %s, and only one can", around.Handler.ID, around.ID)
	case n != first:
		r.refuse(atNode(n), "remove one of them", "%s has several event sub-processes for compensation", around.ID)
	}
}

// markCompensable marks the activities of a scope, and in it, of which a run has to remember
// that they have completed. It reports whether there is one.
func markCompensable(s *Scope) (found bool) {
	for _, n := range s.Nodes {
		inside := n.Scope != nil && markCompensable(n.Scope)
		inside = inside || n.Scope != nil && n.Scope.Compensation() != nil
		n.Compensable = n.Handler != nil || inside && !n.ForCompensation && !n.compensates()
		found = found || n.Compensable
	}
	s.compensable = found
	return found
}

// checkThrown finds the activity that an event compensates.
func (r *reader) checkThrown(event *Node) {
	ref := event.Event.activityRef
	n := r.elements[ref]
	switch {
	case ref == "":
		r.checkThrownToAll(event)
	case r.lost[ref]:
	case n == nil || !n.Kind.Activity():
		r.refuse(atNode(event), "", "the file has no activity %q that could be compensated", ref)
	case !event.reaches(n):
		r.refuse(atNode(event), "throw it beside the activity, or in an event sub-process that is beside it", "%s is in another process or sub-process, where the event compensates nothing", n.ID)
	case !n.Compensable:
		r.refuse(atNode(event), "draw a compensation event at its boundary", "nothing compensates %s", n.ID)
	default:
		event.Event.Activity = n
	}
}

func (r *reader) checkThrownToAll(event *Node) {
	for s := range event.compensated() {
		if s.compensable {
			return
		}
	}
	r.warn(atNode(event), "draw a compensation event at the boundary of an activity", "the event does nothing: nothing compensates an activity beside it")
}

// compensated yields the scopes in which an event compensates: its own and, for one in an event
// sub-process, the one around that.
func (n *Node) compensated() iter.Seq[*Scope] {
	return func(yield func(*Scope) bool) {
		if yield(n.around()) && n.Parent != nil && n.Parent.Triggered {
			yield(n.Parent.around())
		}
	}
}

// around returns the scope that an element is in.
func (n *Node) around() *Scope {
	if n.Parent != nil {
		return n.Parent.Scope
	}
	return &n.Process.Scope
}

func (n *Node) reaches(activity *Node) bool {
	for s := range n.compensated() {
		if activity.Process == n.Process && activity.around() == s {
			return true
		}
	}
	return false
}
