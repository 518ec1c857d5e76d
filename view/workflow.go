package view

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// A Workflow is the state of a process: where its tokens are, what they wait for, and
// its variables.
type Workflow struct {
	Offset     int64             `json:"offset"` // the offset of its workflow.started
	Thread     string            `json:"thread"`
	Invocation string            `json:"invocation,omitempty"` // the newest run that walks it
	Process    string            `json:"process,omitempty"`    // its id in the definition
	Name       string            `json:"name,omitempty"`
	Digest     string            `json:"digest"`            // of the XML of the definition
	XML        string            `json:"xml,omitempty"`     // the definition
	Status     tapedeck.Status   `json:"status"`            // running, complete, failed, cancelled or interrupted
	Outcome    string            `json:"outcome,omitempty"` // completed, failed, cancelled or terminated; absent while it can continue by itself
	Message    string            `json:"message,omitempty"` // why it failed
	Code       string            `json:"code,omitempty"`    // of the failure
	Element    string            `json:"element,omitempty"` // that failed
	Agents     map[string]string `json:"agents,omitempty"`  // agents of tasks, by element, that replace those in the definition
	StartedAt  Time              `json:"started_at"`
	EndedAt    *Time             `json:"ended_at,omitempty"`

	Variables   map[string]json.RawMessage `json:"variables"`
	Elements    []WorkflowElement          `json:"elements"`           // that were entered, in the order of their first activation
	Flows       map[string]int64           `json:"flows"`              // how often each sequence flow was taken
	Activations []WorkflowActivation       `json:"activations"`        // all that are open and the newest ones that have ended, in the order of their beginning
	Earlier     int                        `json:"earlier,omitempty"`  // number of ended activations that are left out
	Tokens      []WorkflowToken            `json:"tokens"`             // on their way to an element, or in front of a gateway that joins
	Waits       []WorkflowWait             `json:"waits,omitempty"`    // of event sub-processes of the process
	Messages    []WorkflowMessage          `json:"messages,omitempty"` // that no element has received yet
}

// A WorkflowElement sums up the activations of an element.
type WorkflowElement struct {
	Element string `json:"element"`
	Name    string `json:"name,omitempty"`
	Type    string `json:"type,omitempty"` // its BPMN name
	Status  string `json:"status"`         // of its newest activation that is open, otherwise of its newest one
	Entered int64  `json:"entered"`        // how often a token entered it; each instance of a loop counts
	Left    int64  `json:"left"`           // how often it was completed
	Failed  int64  `json:"failed,omitempty"`
	Open    int64  `json:"open,omitempty"`    // how many activations are open
	Thread  string `json:"thread,omitempty"`  // the newest thread of its agent
	Attempt int64  `json:"attempt,omitempty"` // the highest number in the name of such a thread
	Offset  int64  `json:"offset"`            // the offset of its newest event
}

// A WorkflowActivation is one time that a token is at an element.
type WorkflowActivation struct {
	ID        string                     `json:"id"`
	Element   string                     `json:"element"`
	Name      string                     `json:"name,omitempty"`
	Type      string                     `json:"type,omitempty"`   // the element's BPMN name
	Scope     string                     `json:"scope,omitempty"`  // the activation around it, or the event that throws the compensation
	Status    string                     `json:"status"`           // active, waiting, completed, failed, interrupted or cancelled
	Index     *int64                     `json:"index,omitempty"`  // of one instance of a loop or a multi-instance element
	Count     *int64                     `json:"count,omitempty"`  // of a multi-instance element: how many instances it has
	Thread    string                     `json:"thread,omitempty"` // of its agent
	Attempt   int64                      `json:"attempt,omitempty"`
	Waits     []WorkflowWait             `json:"waits,omitempty"`
	Variables map[string]json.RawMessage `json:"variables,omitempty"` // that only the activation and what is in it see
	Code      string                     `json:"code,omitempty"`      // of its failure
	Message   string                     `json:"message,omitempty"`   // why it failed
	Offset    int64                      `json:"offset"`
	EndOffset *int64                     `json:"end_offset,omitempty"`
	StartedAt Time                       `json:"started_at"`
	EndedAt   *Time                      `json:"ended_at,omitempty"`

	Compensates string `json:"compensates,omitempty"` // the completed activation that it compensates

	// What follows is for a runner that continues the process.
	Items   json.RawMessage           `json:"-"` // the items of a multi-instance element, an array; nil if it is none, and for an instance
	Outputs map[int64]json.RawMessage `json:"-"` // results of instances
	Begun   int64                     `json:"-"` // how many instances have begun
	Done    int64                     `json:"-"` // how many instances have ended
	Inside  int64                     `json:"-"` // how many activations and tokens are directly in it
	Sent    bool                      `json:"-"` // it sent its message, or what caught its escalation has begun
	Fired   map[string]bool           `json:"-"` // elements whose waits ended, because what they waited for has happened
	Retry   bool                      `json:"-"` // it failed, and the process continues there
	Flow    string                    `json:"-"` // the first sequence flow by which it was entered
	Trigger *WorkflowTrigger          `json:"-"` // what the element waits for has happened; nil if it has not

	Step         int64                  `json:"-"` // when it began: the number of the activations that had begun or ended then
	Compensable  []*WorkflowCompensable `json:"-"` // what has completed directly in it, in the order of completion
	Compensating *WorkflowCompensable   `json:"-"` // what it compensates; nil for nothing
	From         string                 `json:"-"` // the scope in which that has completed
}

// A WorkflowCompensable is an activation that has completed and can be compensated.
type WorkflowCompensable struct {
	ID        string
	Element   string
	Step      int64                      // when it completed, or the loop of which it was an instance; see [WorkflowActivation]
	Variables map[string]json.RawMessage // that only it and what was in it saw, as they were then

	Inside []*WorkflowCompensable // what had completed directly in it
}

// A WorkflowToken is at no element.
type WorkflowToken struct {
	Flow    string           `json:"flow,omitempty"`    // the sequence flow on which it is
	Element string           `json:"element,omitempty"` // the element that it enters next, if it is on no flow
	Scope   string           `json:"scope,omitempty"`   // the activation around it
	Trigger *WorkflowTrigger `json:"-"`                 // the event that put it there; nil for none
}

// A WorkflowTrigger is an event that has happened.
type WorkflowTrigger struct {
	By      string // as in a workflow.caught
	Code    string
	Message string

	Variables map[string]json.RawMessage // that it brings
}

// A WorkflowWait is something that an activation waits for.
type WorkflowWait struct {
	Element     string `json:"element"` // the element that waits: the one of the activation, an event at its boundary, or an event sub-process
	For         string `json:"for"`     // agent, user, timer, message or signal
	Due         string `json:"due,omitempty"`
	Repeats     int64  `json:"repeats,omitempty"` // how often the timer starts again after that; -1 for ever
	Message     string `json:"message,omitempty"`
	Correlation string `json:"correlation,omitempty"`
	Signal      string `json:"signal,omitempty"`
	Permission  string `json:"permission,omitempty"`
	Agent       string `json:"agent,omitempty"`
	Within      bool   `json:"within,omitempty"` // the element is an event sub-process in what waits
	Offset      int64  `json:"offset"`

	Answer *tapedeck.Choice `json:"-"` // to the question; nil if it is pending
}

// A WorkflowMessage is a message that no element has received yet.
type WorkflowMessage struct {
	Offset      int64                      `json:"offset"`
	Name        string                     `json:"name"`
	Correlation string                     `json:"correlation,omitempty"`
	Variables   map[string]json.RawMessage `json:"variables,omitempty"`
	Sender      string                     `json:"sender,omitempty"` // the activation that sent it; absent if it is from outside
}

// A [WorkflowActivation] has one of these statuses.
const (
	ActivationActive      = "active"  // it works, or something in it does
	ActivationWaiting     = "waiting" // for a user, a timer, a message or a signal
	ActivationCompleted   = "completed"
	ActivationFailed      = "failed"
	ActivationInterrupted = "interrupted" // an event at its boundary or a terminate event ended it
	ActivationCancelled   = "cancelled"   // the run was cancelled
)

// Outcomes of a [Workflow].
const (
	WorkflowCompleted  = "completed"
	WorkflowFailed     = "failed"
	WorkflowCancelled  = "cancelled"
	WorkflowTerminated = "terminated"
)

// maxEndedActivations is how many ended activations a [Workflow] has.
const maxEndedActivations = 1000
