package bpmn

import (
	"strings"

	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// triggers are the event definitions that are supported, with the elements that may have
// them.
var triggers = map[string]struct {
	kind EventKind
	at   []Kind
}{
	"messageEventDefinition":    {MessageEvent, []Kind{StartEvent, CatchEvent, ThrowEvent, BoundaryEvent, EndEvent}},
	"timerEventDefinition":      {TimerEvent, []Kind{StartEvent, CatchEvent, BoundaryEvent}},
	"errorEventDefinition":      {ErrorEvent, []Kind{StartEvent, BoundaryEvent, EndEvent}},
	"escalationEventDefinition": {EscalationEvent, []Kind{StartEvent, ThrowEvent, BoundaryEvent, EndEvent}},
	"compensateEventDefinition": {CompensationEvent, []Kind{StartEvent, ThrowEvent, BoundaryEvent, EndEvent}},
	"signalEventDefinition":     {SignalEvent, []Kind{StartEvent, CatchEvent, ThrowEvent, BoundaryEvent, EndEvent}},
	"linkEventDefinition":       {LinkEvent, []Kind{CatchEvent, ThrowEvent}},
	"terminateEventDefinition":  {TerminateEvent, []Kind{EndEvent}},
}

// unsupportedTriggers are refused by name, with what to use instead.
var unsupportedTriggers = map[string][2]string{
	"conditionalEventDefinition": {"conditional events are not supported", "use a gateway with a condition, or a message"},
	"cancelEventDefinition":      {"cancel events belong to transactions, which are not supported", "use an error end event with an error boundary event"},
}

// event reads the trigger of an event, or the message of a send or receive task.
func (r *reader) event(e *element, n *Node) {
	var found []*element
	for _, c := range e.children {
		if c.Space == modelNamespace && (strings.HasSuffix(c.Local, "EventDefinition") || c.Local == "eventDefinitionRef") {
			found = append(found, c)
		}
	}
	isEvent := n.Kind == StartEvent || n.Kind == EndEvent || n.Kind == CatchEvent || n.Kind == ThrowEvent || n.Kind == BoundaryEvent
	switch {
	case n.Kind == ReceiveTask, n.Kind == SendTask && e.attr("messageRef") != "":
		n.Event = &Event{Kind: MessageEvent}
		r.message(e, n)
	case !isEvent:
	case len(found) > 1:
		r.refuse(atNode(n), "draw one event for each trigger", "events with several triggers are not supported")
	case len(found) == 1:
		r.trigger(found[0], n)
	case n.Kind == CatchEvent || n.Kind == BoundaryEvent:
		r.refuse(atNode(n), "choose what it waits for: a message, a timer, a signal", "the event has no trigger")
	}
}

func (r *reader) trigger(d *element, n *Node) {
	where := at{d.line, n.ID, n.Name}
	if d.Local == "eventDefinitionRef" {
		r.refuse(where, "put the trigger into the event", "the file has no event definition %.200q", local(d.content()))
		return
	}
	if u, ok := unsupportedTriggers[d.Local]; ok {
		r.refuse(where, u[1], "%s", u[0])
		return
	}
	t, ok := triggers[d.Local]
	if !ok {
		r.refuse(where, "", "%s is no trigger of BPMN 2.0", d.Local)
		return
	}
	allowed := false
	for _, k := range t.at {
		allowed = allowed || k == n.Kind
	}
	if !allowed {
		r.refuse(where, "", "%s cannot have %s trigger", article(n.Kind), article(t.kind))
		return
	}
	n.Event = &Event{Kind: t.kind}
	switch t.kind {
	case MessageEvent:
		r.message(d, n)
	case TimerEvent:
		n.Event.Timer = r.timer(d, where, n.Kind == StartEvent && n.Parent == nil)
	case ErrorEvent, EscalationEvent:
		r.coded(d, n)
	case CompensationEvent:
		r.compensation(d, n)
	case SignalEvent:
		r.signal(d, n)
	case LinkEvent:
		r.link(d, n)
	}
}

func article[K Kind | EventKind](k K) string {
	text := string(k)
	if strings.ContainsRune("aeio", rune(text[0])) { // a userTask
		return "an " + text
	}
	return "a " + text
}

// message reads the message of an event definition or task.
func (r *reader) message(e *element, n *Node) {
	where := at{e.line, n.ID, n.Name}
	m := r.reference(e, "messageRef", "message", where)
	if m == nil || m.attr("name") == "" {
		n.Event.Name = r.unnamed(n, "message")
	} else {
		n.Event.Name = r.nameOf(m.attr("name"), at{m.line, n.ID, n.Name})
	}
	for _, from := range []*element{m, e} {
		if from == nil {
			continue
		}
		if text, ok := r.correlation(from); ok {
			n.Event.Correlation = r.value(at{from.line, n.ID, n.Name}, text)
		}
	}
}

// correlation returns the correlation key that a message or event has.
func (r *reader) correlation(e *element) (string, bool) {
	if text, ok := e.lookup(tapedeckNamespace, "correlation"); ok && text != "" {
		return text, true
	}
	for _, x := range e.extensions() {
		if x.Space == zeebeNamespace && x.Local == "subscription" && x.attr("correlationKey") != "" {
			return x.attr("correlationKey"), true
		}
	}
	return "", false
}

func (r *reader) signal(d *element, n *Node) {
	s := r.reference(d, "signalRef", "signal", at{d.line, n.ID, n.Name})
	if s == nil || s.attr("name") == "" {
		n.Event.Name = r.unnamed(n, "signal")
		return
	}
	n.Event.Name = r.nameOf(s.attr("name"), at{s.line, n.ID, n.Name})
}

// unnamed returns the name of a message or signal that the file does not name: that of
// the element, so that a sketch runs.
func (r *reader) unnamed(n *Node, what string) *expression.Value {
	name := n.Name
	if name == "" {
		name = n.ID
	}
	r.warn(atNode(n), "", "the event has no %s; its %s is named %q, like the element", what, what, name)
	return expression.Literal(name)
}

// nameOf compiles the name of a message or signal, which both Camundas may compute.
func (r *reader) nameOf(text string, where at) *expression.Value {
	if strings.Contains(text, "${") {
		return r.compiled(where, expression.ParseJUEL, text)
	}
	return r.value(where, text)
}

// reference returns the element of the file that an attribute names, nil if there is
// none.
func (r *reader) reference(e *element, attr, kind string, where at) *element {
	ref := local(e.attr(attr))
	if ref == "" {
		return nil
	}
	found := r.shared[ref]
	if found == nil || found.Local != kind {
		r.refuse(where, "", "the file has no %s %q", kind, ref)
		return nil
	}
	return found
}

// coded reads the code of an error or an escalation.
func (r *reader) coded(d *element, n *Node) {
	kind := string(n.Event.Kind)
	x := r.reference(d, kind+"Ref", kind, at{d.line, n.ID, n.Name})
	if x != nil {
		n.Event.Code, n.Event.CodeName = x.attr(kind+"Code"), x.attr("name")
		if n.Event.Code == "" {
			n.Event.Code = n.Event.CodeName
		}
	}
	if strings.HasPrefix(n.Event.Code, "=") || strings.Contains(n.Event.Code, "${") {
		r.refuse(at{d.line, n.ID, n.Name}, "write the code itself", "the %s code %q is an expression, which is not supported", kind, n.Event.Code)
	}
	if n.Event.Kind == ErrorEvent && n.Kind != EndEvent && !n.Interrupting {
		r.refuse(atNode(n), "let it interrupt", "an event that catches an error always interrupts")
	}
}

// checkCatchers warns of events that never happen, because another one catches the same.
func (r *reader) checkCatchers(p *Process) {
	r.onlyFirst(p.EventSubProcesses)
	each(&p.Scope, func(n *Node) {
		r.onlyFirst(n.Boundary)
		if n.Scope != nil {
			r.onlyFirst(n.Scope.EventSubProcesses)
		}
	})
}

func (r *reader) onlyFirst(list []*Node) {
	type caught struct {
		kind EventKind
		code string
	}
	by := map[caught]*Node{}
	for _, n := range list {
		event := n.CatchEvent()
		if event == nil || !event.Kind.Propagates() {
			continue
		}
		c := caught{event.Kind, event.Code}
		if by[c] == nil {
			by[c] = n
		} else {
			r.warn(atNode(n), "give each a code of its own", "the event never happens: %s catches the same", by[c].ID)
		}
	}
}

func (r *reader) link(d *element, n *Node) {
	name := d.attr("name")
	if name == "" {
		name = n.Name
	}
	if name == "" {
		r.refuse(at{d.line, n.ID, n.Name}, "give both link events the same name", "the link event has no name")
	}
	n.Event.Name = expression.Literal(name)
}

// timer reads when a timer event is due. It returns nil for the start event of a process
// without a time.
func (r *reader) timer(d *element, where at, start bool) *Timer {
	var t *Timer
	for _, c := range d.children {
		kind := TimerKind(c.Local)
		if c.Space != modelNamespace || kind != Date && kind != Duration && kind != Cycle || c.content() == "" {
			continue
		}
		if t != nil {
			r.refuse(where, "", "the timer has more than one time")
			return t
		}
		where.line = c.line
		t = &Timer{Kind: kind, Line: c.line}
		if strings.Contains(c.content(), "${") || strings.HasPrefix(c.content(), "#{") {
			t.Value = r.compiled(where, expression.ParseJUEL, c.content())
		} else {
			t.Value = r.value(where, c.content())
		}
		if text, ok := t.Value.Constant(); ok {
			if err := checkTimer(kind, text); err != nil {
				r.refuseError(where, err)
			}
		}
	}
	if t == nil {
		if start {
			return nil // a run begins at once
		}
		r.refuse(where, "give it a date (2026-12-24T18:00:00Z), a duration (PT15M) or a cycle (R3/PT10S)", "the timer has no time")
		return &Timer{Kind: Duration, Value: expression.Literal("PT0S"), Line: d.line}
	}
	return t
}
