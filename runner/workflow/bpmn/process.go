package bpmn

import (
	"strconv"
	"strings"
)

// kinds are the elements that a token can enter.
var kinds = map[string]Kind{}

func init() {
	for _, k := range []Kind{
		Task, ServiceTask, SendTask, ReceiveTask, UserTask, ManualTask, ScriptTask, BusinessRuleTask, SubProcess, CallActivity,
		ExclusiveGateway, ParallelGateway, InclusiveGateway, EventBasedGateway, StartEvent, EndEvent, CatchEvent, ThrowEvent, BoundaryEvent,
	} {
		kinds[string(k)] = k
	}
}

// unsupported are elements that are refused by name, with what to use instead.
var unsupported = map[string][2]string{
	"adHocSubProcess":    {"ad hoc sub-processes are not supported", "draw the order of the tasks, or use a parallel gateway"},
	"transaction":        {"transactions are not supported", "use a sub-process with an error boundary event"},
	"complexGateway":     {"complex gateways are not supported", "use an inclusive gateway"},
	"choreographyTask":   {"choreographies are not supported", "draw a process"},
	"subChoreography":    {"choreographies are not supported", "draw a process"},
	"callChoreography":   {"choreographies are not supported", "draw a process"},
	"callConversation":   {"conversations are not supported", "draw a process"},
	"subConversation":    {"conversations are not supported", "draw a process"},
	"implicitThrowEvent": {"implicit throw events are not supported", "use an intermediate throw event"},
}

// Activity reports whether the element is a task, a sub-process or a call activity.
func (k Kind) Activity() bool {
	switch k {
	case Task, ServiceTask, SendTask, ReceiveTask, UserTask, ManualTask, ScriptTask, BusinessRuleTask, SubProcess, CallActivity:
		return true
	}
	return false
}

// Gateway reports whether the element is a gateway.
func (k Kind) Gateway() bool {
	return k == ExclusiveGateway || k == ParallelGateway || k == InclusiveGateway || k == EventBasedGateway
}

// attributes are those that BPMN 2.0 gives to the elements that are read.
var attributes = words(`id name isExecutable processType isClosed definitionalCollaborationRef sourceRef targetRef isImmediate default
	startQuantity completionQuantity isForCompensation implementation operationRef messageRef instantiate scriptFormat
	triggeredByEvent calledElement gatewayDirection eventGatewayType attachedToRef cancelActivity isInterrupting parallelMultiple
	isSequential behavior oneBehaviorEventRef noneBehaviorEventRef testBefore loopMaximum errorRef signalRef escalationRef
	activityRef waitForCompletion language evaluatesToTypeRef xmlns`)

// flags are the attributes that are true or false.
var flags = words(`isClosed isImmediate isForCompensation instantiate triggeredByEvent cancelActivity isInterrupting
	parallelMultiple isSequential testBefore waitForCompletion`)

// flag returns an attribute that is true or false. Another value is refused, because a
// misspelt "false" would mean its opposite.
func (r *reader) flag(e *element, where at, name string, absent bool) bool {
	value, ok := e.flag(name, absent)
	if !ok {
		r.refuse(where, "write true or false", "%s is %.40q, not true or false", name, e.attr(name))
	}
	return value
}

// is returns an attribute that checkAttributes has checked.
func (e *element) is(name string, absent bool) bool {
	value, _ := e.flag(name, absent)
	return value
}

func (e *element) flag(name string, absent bool) (value, ok bool) {
	text, has := e.lookup("", name)
	switch text {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return absent, !has
}

// checkAttributes warns of attributes that BPMN does not have: one that was misspelt must
// not be lost.
func (r *reader) checkAttributes(e *element, where at) {
	for _, a := range e.attrs {
		if a.Name.Space == "" && !attributes[a.Name.Local] {
			r.warn(at{e.line, where.id, where.name}, "", "%s is no attribute of BPMN 2.0, so it is not read", a.Name.Local)
		}
		if a.Name.Space == "" && flags[a.Name.Local] {
			r.flag(e, at{e.line, where.id, where.name}, a.Name.Local, false)
		}
	}
	for _, c := range e.children {
		if c.Space == modelNamespace && inNodes[c.Local] {
			r.checkAttributes(c, where)
		}
	}
}

// scope reads the elements of a process or sub-process.
func (r *reader) scope(e *element, s *Scope, parent *Node) {
	defaults, attached := map[*Node]string{}, map[*Node]string{}
	var flows []*element
	for _, c := range e.children {
		if c.Space != modelNamespace {
			continue
		}
		if kind, ok := kinds[c.Local]; ok {
			n := r.node(c, kind, parent)
			s.Nodes = append(s.Nodes, n)
			defaults[n], attached[n] = local(c.attr("default")), local(c.attr("attachedToRef"))
			continue
		}
		switch {
		case c.Local == "sequenceFlow":
			flows = append(flows, c)
		case ignored[c.Local], c.Local == "laneSet", parent != nil && loopElements[c.Local]:
		case unsupported[c.Local][0] != "":
			r.lose(c, s)
			r.refuse(atElement(c), unsupported[c.Local][1], "%s", unsupported[c.Local][0])
		default:
			r.lose(c, s)
			r.refuse(atElement(c), "", "%s is no element of BPMN 2.0 that may be in a process", c.Local)
		}
	}
	inside := map[string]*Node{}
	for _, n := range s.Nodes {
		inside[n.ID] = n
	}
	for _, f := range flows {
		r.flow(f, s, inside)
	}
	for _, n := range s.Nodes {
		r.connect(n, s, inside, defaults[n], attached[n])
	}
	for _, n := range s.Nodes {
		r.sketch(n)
	}
}

// lose remembers an element that was refused and is not in its scope, so that what refers
// to it is no other problem.
func (r *reader) lose(e *element, from *Scope) {
	r.lost[idOf(e)], r.incomplete[from] = true, true
}

func (r *reader) flow(e *element, s *Scope, inside map[string]*Node) {
	where := atElement(e)
	r.checkAttributes(e, where)
	if !r.checkID(where) {
		return
	}
	f := &Flow{ID: idOf(e), Name: e.attr("name"), Line: e.line}
	ends := [2]*Node{}
	for i, attr := range []string{"sourceRef", "targetRef"} {
		ref := local(e.attr(attr))
		ends[i] = inside[ref]
		switch {
		case ends[i] != nil:
		case ref != "" && r.lost[ref]:
			r.lost[f.ID] = true
		case ref == "":
			r.refuse(where, "", "the flow has no %s", attr)
		case r.elements[ref] != nil:
			r.refuse(where, "end the flow in the sub-process, and let another one leave the sub-process", "the %s of the flow, %s, is in another process or sub-process", attr, ref)
		default:
			r.refuse(where, "", "the %s of the flow is %s, which is no element that a flow can connect", attr, ref)
		}
	}
	if c := e.child("conditionExpression"); c != nil {
		r.conditionLanguage(where, c)
		f.Condition = r.condition(at{c.line, where.id, where.name}, c.content())
	}
	if ends[0] == nil || ends[1] == nil {
		return
	}
	f.From, f.To = ends[0], ends[1]
	f.From.Out, f.To.In = append(f.From.Out, f), append(f.To.In, f)
	s.Flows = append(s.Flows, f)
}

// conditionLanguage refuses conditions in languages that are programs. An empty condition has no
// language. One that begins with = or ${ is ours, whatever the language of the file is.
func (r *reader) conditionLanguage(where at, e *element) {
	written, text := e.attr("language"), e.content()
	if written == "" && text != "" && !strings.HasPrefix(text, "=") && !strings.HasPrefix(text, "${") {
		written = r.language
	}
	language := strings.ToLower(written)
	switch language[strings.LastIndexByte(language, '/')+1:] {
	case "", "feel", "expr", "juel", "expression", "xpath", "formalexpression":
		return
	}
	if language == "" || strings.Contains(language, "feel") || strings.Contains(language, "xpath") {
		return
	}
	r.refuse(where, "write the condition as an expression, for example = price > 10", "conditions in %q are not supported", written)
}

// connect sets what a node refers to in its scope.
func (r *reader) connect(n *Node, s *Scope, inside map[string]*Node, byDefault, attached string) {
	if byDefault != "" {
		for _, f := range n.Out {
			if f.ID == byDefault {
				n.Default = f
			}
		}
		if n.Default == nil && !r.lost[byDefault] {
			r.refuse(atNode(n), "", "its default flow is %s, which does not leave it", byDefault)
		}
	}
	if n.Kind == BoundaryEvent {
		switch host := inside[attached]; {
		case attached != "" && r.lost[attached]:
		case host == nil || !host.Kind.Activity():
			r.refuse(atNode(n), "attach it to a task, a sub-process or a call activity", "the boundary event is attached to %q, which is no activity of the same process", attached)
		case n.Event != nil && n.Event.Kind == EscalationEvent && host.Kind != SubProcess && host.Kind != CallActivity:
			r.refuse(atNode(n), "attach it to a sub-process or a call activity", "%s throws no escalation, so the boundary event at %s never happens", article(host.Kind), host.ID)
		default:
			n.AttachedTo = host
			host.Boundary = append(host.Boundary, n)
		}
	}
	if n.Triggered {
		s.EventSubProcesses = append(s.EventSubProcesses, n)
	}
}

// inNodes are the children of elements that are read elsewhere.
var inNodes = words(`standardLoopCharacteristics multiInstanceLoopCharacteristics script messageEventDefinition timerEventDefinition
	errorEventDefinition signalEventDefinition linkEventDefinition terminateEventDefinition escalationEventDefinition
	compensateEventDefinition conditionalEventDefinition cancelEventDefinition`)

var loopElements = words(`standardLoopCharacteristics multiInstanceLoopCharacteristics`)

func (r *reader) node(e *element, kind Kind, parent *Node) *Node {
	r.checkAttributes(e, atElement(e))
	n := &Node{ID: idOf(e), Name: oneLine(e.attr("name")), Kind: kind, Line: e.line, Lane: r.lanes[idOf(e)], Process: r.process, Parent: parent}
	if n.Lane == "" && parent != nil {
		n.Lane = parent.Lane
	}
	if r.checkID(atNode(n)) && r.elements[n.ID] == nil {
		r.elements[n.ID] = n
	}
	if c := e.child("documentation"); c != nil {
		n.Documentation, n.partial = c.content(), c.partial
	}
	if kind != SubProcess {
		for _, c := range e.children {
			if c.Space == modelNamespace && !ignored[c.Local] && !inNodes[c.Local] {
				r.refuse(at{c.line, n.ID, n.Name}, "", "%s is no element of BPMN 2.0 that may be in %s", c.Local, kind)
			}
		}
	}
	if n.ForCompensation = e.is("isForCompensation", false); n.ForCompensation && !kind.Activity() {
		r.refuse(atNode(n), "", "%s cannot be for compensation: only an activity can", article(kind))
	}
	if kind == EventBasedGateway && strings.EqualFold(e.attr("eventGatewayType"), "parallel") {
		r.refuse(atNode(n), "use a parallel gateway with an event in each branch", "an event-based gateway that waits for all its events is not supported")
	}
	n.instantiates = e.is("instantiate", false)
	n.Interrupting = e.is("cancelActivity", true)
	if kind == StartEvent {
		n.Interrupting = e.is("isInterrupting", true)
	}
	r.event(e, n)
	r.loop(e, n)
	switch kind {
	case SubProcess:
		n.Triggered = e.is("triggeredByEvent", false)
		n.Scope = &Scope{}
		r.scope(e, n.Scope, n)
	case ScriptTask:
		r.script(e, n)
	case CallActivity:
		r.call(e, n)
	}
	r.extend(e, n)
	return n
}

// sketch makes tasks of what has nothing in it, so that the sketch of a process runs.
func (r *reader) sketch(n *Node) {
	switch {
	case n.Kind == SubProcess && !n.Triggered && len(n.Scope.Nodes) == 0 && !r.refused(n):
		r.warn(atNode(n), "", "the sub-process is empty, so it does nothing")
	case n.Kind == CallActivity && r.global[n.CalledProcess]:
		r.warn(atNode(n), "", "the global task %s is not read, so the call activity does nothing", n.CalledProcess)
		n.CalledProcess, n.PassIn, n.PassOut = "", false, false
	default:
		return
	}
	n.Kind, n.Scope = Task, nil
}

// oneLine returns a name without the line breaks that modelers put into it.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }

// script reads the script of BPMN itself; extensions may have another one.
func (r *reader) script(e *element, n *Node) {
	c := e.child("script")
	if c == nil {
		return
	}
	format := strings.ToLower(e.attr("scriptFormat"))
	switch format[strings.LastIndexByte(format, '/')+1:] {
	case "", "feel", "expr", "juel", "x-tapedeck", "x-feel", "expression":
	default:
		r.refuse(atNode(n), `set the format to "expr" and write lines such as total = price * count`, "scripts in %q are not supported", e.attr("scriptFormat"))
		return
	}
	n.Script = r.lines(at{c.line, n.ID, n.Name}, c.content())
}

// loop reads how often an activity runs.
func (r *reader) loop(e *element, n *Node) {
	if c := e.child("standardLoopCharacteristics"); c != nil {
		where := at{c.line, n.ID, n.Name}
		l := &Loop{Kind: StandardLoop, Line: c.line, TestBefore: c.is("testBefore", false)}
		if text := c.attr("loopMaximum"); text != "" {
			maximum, err := strconv.Atoi(text)
			if err != nil || maximum < 1 {
				r.refuse(where, "", "the loopMaximum %q is not a number from 1", text)
			}
			l.Maximum = maximum
		}
		if condition := c.child("loopCondition"); condition != nil {
			l.Condition = r.condition(where, condition.content())
		}
		if l.Condition == nil && l.Maximum == 0 {
			r.refuse(where, "give it a loopCondition or a loopMaximum", "the loop has neither a condition nor a maximum, so it would never end")
		}
		n.Loop = l
	}
	if c := e.child("multiInstanceLoopCharacteristics"); c != nil {
		n.Loop = r.instances(c, at{c.line, n.ID, n.Name})
	}
}

func (r *reader) instances(c *element, where at) *Loop {
	l := &Loop{Kind: Parallel, Line: c.line}
	if c.is("isSequential", false) {
		l.Kind = Sequential
	}
	for _, part := range c.children {
		if part.Space != modelNamespace {
			continue
		}
		switch part.Local {
		case "loopCardinality":
			if part.content() != "" {
				l.Cardinality = r.expression(where, part.content())
			}
		case "completionCondition":
			l.Condition = r.condition(where, part.content())
		case "loopDataInputRef", "inputDataItem", "loopDataOutputRef", "outputDataItem":
			r.warn(where, "", "%s is not read: data objects are no variables", part.Local)
		case "complexBehaviorDefinition":
			r.refuse(where, "", "%s is not supported", part.Local)
		}
	}
	if behavior := c.attr("behavior"); behavior != "" && !strings.EqualFold(behavior, "all") {
		r.refuse(where, "", "a multi-instance activity with the behavior %q is not supported", behavior)
	}
	r.loopExtensions(c, l, where)
	switch {
	case l.Collection == nil && l.Cardinality == nil:
		r.refuse(where, "give it a collection (zeebe:loopCharacteristics inputCollection, camunda:collection, tapedeck:collection) or a loopCardinality", "the multi-instance activity has neither a collection nor a number of instances")
	case l.Collection != nil && l.Cardinality != nil:
		r.refuse(where, "remove one of them", "the multi-instance activity has a collection and a number of instances")
	}
	return l
}
