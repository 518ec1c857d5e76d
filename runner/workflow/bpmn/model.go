package bpmn

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/internal/schema"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// Definitions is what one file defines. It does not change after it was read, so several
// runs can share it.
type Definitions struct {
	Name     string // of the file's definitions element; may be empty
	Exporter string // the program that wrote the file, with its version; may be empty
	Digest   string // the SHA-256 of the file, in hexadecimal

	Processes []*Process // in the order of the file
	Main      *Process   // the process that a run executes

	// Warnings says what the file asks for and a run does not do, in the order of the
	// lines. At most 200 are kept.
	Warnings []Problem

	elements map[string]*Node
}

// Node returns the element with this id in any process, nil if there is none.
func (d *Definitions) Node(id string) *Node { return d.elements[id] }

// Process returns the process with this id, nil if there is none.
func (d *Definitions) Process(id string) *Process {
	for _, p := range d.Processes {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// A Process is one process of a file.
type Process struct {
	ID         string
	Name       string // the name of the process, or of its pool; may be empty
	Line       int
	Executable bool // what the file says; the main process runs in both cases
	Scope
}

// A Scope is what a process or a sub-process directly contains.
type Scope struct {
	Nodes []*Node // in the order of the file, without those of sub-processes
	Flows []*Flow

	// Start is the start event where a token begins: the one without a trigger or, if there
	// is none, the only one with a trigger. It is nil if the scope has no start event.
	Start *Node

	// Starts is where tokens begin, in the order of the file: Start or, without one, each
	// element to which no flow leads (BPMN 2.0, 10.5.2). It is never empty in processes that
	// a run reaches.
	Starts []*Node

	// EventSubProcesses has the sub-processes that begin with an event.
	EventSubProcesses []*Node

	compensable bool // one of the nodes is Compensable
}

// Kind is the kind of an element, in the words of BPMN's XML.
type Kind string

// These are the kinds of elements that a token can enter.
const (
	Task             Kind = "task"
	ServiceTask      Kind = "serviceTask"
	SendTask         Kind = "sendTask"
	ReceiveTask      Kind = "receiveTask"
	UserTask         Kind = "userTask"
	ManualTask       Kind = "manualTask"
	ScriptTask       Kind = "scriptTask"
	BusinessRuleTask Kind = "businessRuleTask"
	SubProcess       Kind = "subProcess" // with [Node.Triggered], an event sub-process
	CallActivity     Kind = "callActivity"

	ExclusiveGateway  Kind = "exclusiveGateway"
	ParallelGateway   Kind = "parallelGateway"
	InclusiveGateway  Kind = "inclusiveGateway"
	EventBasedGateway Kind = "eventBasedGateway"

	StartEvent    Kind = "startEvent"
	EndEvent      Kind = "endEvent"
	CatchEvent    Kind = "intermediateCatchEvent"
	ThrowEvent    Kind = "intermediateThrowEvent"
	BoundaryEvent Kind = "boundaryEvent"
)

// A Node is an element that a token can enter.
type Node struct {
	ID            string
	Name          string // may be empty
	Documentation string // may be empty
	Kind          Kind
	Line          int
	Lane          string // the name of its lane, or the lane's id if it has no name; may be empty

	Process *Process
	Parent  *Node // the sub-process around it, nil directly in the process

	In, Out []*Flow // in the order of the file
	Default *Flow   // the default flow, nil if there is none; it is in Out, too

	// Event says what the element waits for or throws. It is nil for events without a
	// trigger and for elements that are no events. Receive tasks, and send tasks with
	// a message, have the event of their message.
	Event *Event

	// AttachedTo is the activity of a boundary event. Interrupting is true if the
	// boundary event, or the start event of an event sub-process, ends what it
	// interrupts.
	AttachedTo   *Node
	Interrupting bool
	Boundary     []*Node // the boundary events of an activity

	Scope     *Scope // of a sub-process, else nil
	Triggered bool   // an event sub-process: it has no flows, and its Scope.Start has an event

	// ForCompensation says that the activity is a handler: it has no flows and no boundary
	// events, and runs when an activity is compensated of which it is the Handler. Handler
	// is nil for an activity without a compensation event at its boundary. Compensable says
	// that a run has to remember the activity when it has completed (BPMN 2.0, 13.5.5).
	ForCompensation bool
	Handler         *Node
	Compensable     bool

	// CalledProcess is the id of the process that a call activity runs, or the name of
	// another file, whose main process it runs; Called is the process, and CalledIn the
	// definitions it belongs to. If PassIn is true, the called
	// process gets all variables of the caller, else only Inputs. If PassOut is true, the
	// caller gets all variables of the called process, else only Outputs.
	CalledProcess   string
	Called          *Process
	CalledIn        *Definitions
	PassIn, PassOut bool

	// LinkTarget is the catching link event that follows a throwing one.
	LinkTarget *Node

	// instantiates says that a receive task or an event-based gateway begins the process
	// itself. A run does not wait for that, but then waits in the element.
	instantiates bool
	partial      bool // a part of the documentation is not read

	Loop   *Loop      // nil if the activity runs once
	Agent  *AgentTask // nil if no agent does the work
	Form   *Form      // of user tasks and start events; nil if nothing is asked
	Script *Script    // of script tasks, and of service tasks with an expression

	// Assignee, CandidateUsers and CandidateGroups of a user task are shown to people;
	// they restrict nobody. They may be empty.
	Assignee, CandidateUsers, CandidateGroups string

	// Inputs are evaluated, in this order, when the element is entered. They set
	// variables that only the element sees. Outputs are evaluated when it completes,
	// with the variables that the element sees, its result among them; they set
	// variables of the scope around it. If there are outputs, only they leave the
	// element.
	Inputs, Outputs []Mapping
}

// CatchEvent is the event of a boundary event or, of an event sub-process, that of its
// start. It is nil for the others, and if the start of the event sub-process is wrong.
func (n *Node) CatchEvent() *Event {
	switch {
	case n.Kind == BoundaryEvent:
		return n.Event
	case n.Triggered && n.Scope.Start != nil:
		return n.Scope.Start.Event
	}
	return nil
}

// Compensation returns the event sub-process that compensates the sub-process with this
// scope, nil if there is none.
func (s *Scope) Compensation() *Node {
	for _, n := range s.EventSubProcesses {
		if event := n.CatchEvent(); event != nil && event.Kind == CompensationEvent {
			return n
		}
	}
	return nil
}

// ThrowsCompensation reports whether an element is an event that throws compensation.
func (n *Node) ThrowsCompensation() bool {
	return (n.Kind == ThrowEvent || n.Kind == EndEvent) && n.Event != nil && n.Event.Kind == CompensationEvent
}

// A Flow is a sequence flow.
type Flow struct {
	ID        string
	Name      string // may be empty
	Line      int
	From, To  *Node
	Condition *expression.Program // nil if there is none
}

// A Mapping sets a variable.
type Mapping struct {
	Target string
	Source *expression.Value
	Line   int
}

// An AgentTask is work for an agent. The task gets its agent by the first of these
// that the run has: an agent for the id of the element, an agent for the Type, Agent.
type AgentTask struct {
	Agent string // the name of the agent; empty if only Type names the work
	Type  string // the job type (Camunda 8) or topic (Camunda 7) of a task that names no agent; may be empty

	// Prompt is what the agent is asked. It is never nil: without a prompt in the file
	// it is the documentation of the element or, without one, its name or id.
	Prompt *expression.Value

	Output   string          // the variable that gets the result; empty if only the outputs use it
	ResultAs ResultAs        // how the text of the agent becomes the result
	Schema   json.RawMessage // a JSON Schema that the result has to fit; nil if there is none
	Line     int

	schema *schema.Schema
}

// ResultVariable is the variable with the result of an agent that the outputs of its
// element see, whatever its Output is.
const ResultVariable = "result"

// ResultAs says how the text of an agent becomes a value.
type ResultAs string

// These are the ways to read the text of an agent.
const (
	AsText ResultAs = "text" // the text itself
	AsJSON ResultAs = "json" // the JSON value in the text; the default if there is a schema
)

// A Script is what a script task evaluates: a value for one variable, or lines that
// assign variables.
type Script struct {
	Lines  *expression.Script
	Result string // the variable that gets the value of the last line; may be empty
}

// EventKind is what triggers an event.
type EventKind string

// These are the triggers of events.
const (
	MessageEvent      EventKind = "message"
	TimerEvent        EventKind = "timer"
	ErrorEvent        EventKind = "error"
	EscalationEvent   EventKind = "escalation"
	CompensationEvent EventKind = "compensation"
	SignalEvent       EventKind = "signal"
	LinkEvent         EventKind = "link"
	TerminateEvent    EventKind = "terminate"
)

// Propagates reports whether what is thrown goes from the inside outwards, to the first
// event that catches it.
func (k EventKind) Propagates() bool { return k == ErrorEvent || k == EscalationEvent }

// Waits reports whether something can wait for such an event.
func (k EventKind) Waits() bool { return k == MessageEvent || k == TimerEvent || k == SignalEvent }

// An Event says what an element waits for or throws.
type Event struct {
	Kind EventKind

	// Name is the name of a message, signal or link. It can contain expressions for
	// messages and signals.
	Name *expression.Value

	// Correlation is the value that a message must have; nil if every message of the
	// name is meant.
	Correlation *expression.Value

	// Code is the code of an error or an escalation, and CodeName its name. A catching
	// event with the code "" catches every error, or every escalation. The variables, if
	// they are not empty, get the code and the message of what was caught.
	Code            string
	CodeName        string
	CodeVariable    string
	MessageVariable string

	Timer *Timer // nil for the start event of a process that says no time

	// Activity is what an event that throws compensation compensates; nil for all that it
	// reaches. GoesOn says that the token does not wait for that.
	Activity    *Node
	GoesOn      bool
	activityRef string
}

// A Timer says when a timer event is due.
type Timer struct {
	Kind  TimerKind
	Value *expression.Value
	Line  int
}

// TimerKind is how a timer is written.
type TimerKind string

// These are the ways to write a timer, all of them in ISO 8601.
const (
	Date     TimerKind = "timeDate"     // a date with time: 2026-12-24T18:00:00Z
	Duration TimerKind = "timeDuration" // PT15M
	Cycle    TimerKind = "timeCycle"    // R3/PT10S
)

// LoopKind is how an activity repeats.
type LoopKind string

// These are the kinds of repetition.
const (
	StandardLoop LoopKind = "standard"
	Sequential   LoopKind = "sequential" // multi-instance, one instance after another
	Parallel     LoopKind = "parallel"   // multi-instance, all instances at once
)

// A Loop says how often an activity runs.
type Loop struct {
	Kind LoopKind
	Line int

	// Of a multi-instance activity: either the Cardinality, or a Collection whose
	// elements become the variable Element (empty: no variable) of each instance.
	Cardinality *expression.Value
	Collection  *expression.Value
	Element     string

	// OutputCollection is the variable that gets the list of the OutputElement of each
	// instance, in the order of the collection. It is empty if there is none.
	OutputCollection string
	OutputElement    *expression.Value

	// Condition of a standard loop: the activity runs again while it is true. Of a
	// multi-instance activity: the activity is complete as soon as it is true after an
	// instance. It may be nil for multi-instance activities and, if Maximum is not 0,
	// for standard loops.
	Condition  *expression.Program
	TestBefore bool // a standard loop tests its condition before the first time, too
	Maximum    int  // how often a standard loop runs at most; 0: no limit of its own
}

// A Form is what a person is asked.
type Form struct {
	Fields []Field
	Line   int
}

// FieldType is the type of a field.
type FieldType string

// These are the types of fields.
const (
	StringField  FieldType = "string"
	TextField    FieldType = "text" // a string of several lines
	IntegerField FieldType = "integer"
	NumberField  FieldType = "number"
	BooleanField FieldType = "boolean"
	DateField    FieldType = "date" // 2026-12-24
	EnumField    FieldType = "enum" // one of the options
)

// A Field is one field of a form. Its id is the name of the variable that it sets.
type Field struct {
	ID       string
	Label    string // the id if the file has no label
	Type     FieldType
	Required bool
	ReadOnly bool
	Options  []Option          // of enums, at least one
	Default  *expression.Value // nil if there is none

	Min, Max             *float64 // of numbers, inclusive; nil: no limit
	MinLength, MaxLength *int     // of strings, in characters; nil: no limit
	Line                 int
}

// An Option is one choice of an enum.
type Option struct {
	Value string
	Label string // the value if the file has no label
}
