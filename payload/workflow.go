package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// The state of a workflow is a fold of its events; see package view. Each event is
// one decision of the workflow runner, and what follows from it needs no other
// event: so a run that is cut off between any two events can continue.

// WorkflowStarted begins a process, or continues one in a new invocation.
type WorkflowStarted struct {
	Process   string            `json:"process,omitempty"` // its id in the definition
	Name      string            `json:"name,omitempty"`
	Digest    string            `json:"digest"`              // of the XML of the definition: "sha256:" and hexadecimal digits
	XML       string            `json:"xml,omitempty"`       // the definition; "" if the process continues
	Starts    []string          `json:"starts,omitempty"`    // the elements that get a token, as a rule one start event
	Variables tapedeck.Members  `json:"variables,omitempty"` // the first variables
	Agents    map[string]string `json:"agents,omitempty"`    // agents of tasks, by element, that replace those in the definition
	Resumes   string            `json:"resumes,omitempty"`   // the invocation whose process continues with all its tokens; "" for a new process
	Common
}

// WorkflowElement names an element of a process.
type WorkflowElement struct {
	Element string `json:"element" shape:"id"` // its id in the definition
	Name    string `json:"name,omitempty"`
}

// WorkflowEntered says that a token reached an element. That begins an activation. If
// the activation exists, it begins again after a failure.
type WorkflowEntered struct {
	WorkflowElement
	ElementType string           `json:"elementType,omitempty"` // its BPMN name, such as "serviceTask"
	Activation  string           `json:"activation,omitempty"`  // unique in the process
	Scope       string           `json:"scope,omitempty"`       // the activation of the sub-process, call or loop around it, or of the event that throws the compensation; "" for the process
	Flows       []string         `json:"flows,omitempty"`       // the sequence flows whose tokens it takes
	Starts      []string         `json:"starts,omitempty"`      // the elements in it that get a token, as a rule one start event
	Items       json.RawMessage  `json:"items,omitempty"`       // the items of a multi-instance element, an array; nil for none
	Index       *int64           `json:"index,omitempty"`       // from 0, of one instance of a loop or a multi-instance element; nil for none
	Thread      string           `json:"thread,omitempty"`      // the thread of its agent
	Attempt     int64            `json:"attempt,omitempty"`     // the number in the thread's name, from 1; 0 for none
	Variables   tapedeck.Members `json:"variables,omitempty"`   // variables that only the activation and what is in it see
	Compensates string           `json:"compensates,omitempty"` // the completed activation that it compensates; "" for none
	Common
}

// WorkflowWaiting says that an activation waits, for itself or for an event at its
// boundary or in an event sub-process.
type WorkflowWaiting struct {
	WorkflowElement
	Activation  string `json:"activation,omitempty"` // the one that waits; "" for the process
	For         string `json:"for"`                  // "agent", "user", "timer", "message" or "signal"
	Due         string `json:"due,omitempty"`        // of a timer, an RFC 3339 time
	Repeats     int64  `json:"repeats,omitempty"`    // how often the timer starts again after that; -1 for ever
	Message     string `json:"message,omitempty"`    // the name of the message
	Correlation string `json:"correlation,omitempty"`
	Signal      string `json:"signal,omitempty"`     // the name of the signal
	Permission  string `json:"permission,omitempty"` // the id of the question to the user
	Agent       string `json:"agent,omitempty"`
	Within      bool   `json:"within,omitempty"` // the element is an event sub-process in the activation, or in the process
	Common
}

// WorkflowCaught says that what an element waits for has happened. An element that is
// not the one of the activation gets a token.
type WorkflowCaught struct {
	WorkflowElement
	Activation string           `json:"activation,omitempty"` // the one that waited; "" for the process
	By         string           `json:"by"`                   // "timer", "message", "signal", "error", "escalation" or "compensation"
	Within     bool             `json:"within,omitempty"`     // the element is an event sub-process in the activation, or in the process
	Interrupts bool             `json:"interrupts,omitempty"` // the activation ends or, for an event sub-process, all that is in it
	Code       string           `json:"code,omitempty"`       // of an error or an escalation
	Message    string           `json:"message,omitempty"`    // of an error or an escalation, for people
	Received   *int64           `json:"received,omitempty"`   // the offset of a workflow.message from outside; nil for none
	Sender     string           `json:"sender,omitempty"`     // the activation that sent the message or threw the escalation; "" for none
	Due        string           `json:"due,omitempty"`        // when the timer is due again; "" if it is not
	Repeats    int64            `json:"repeats,omitempty"`    // how often it starts again after that; -1 for ever
	Variables  tapedeck.Members `json:"variables,omitempty"`  // it sets these variables
	Common
}

// WorkflowLeft says that an element finished.
type WorkflowLeft struct {
	WorkflowElement
	Activation string           `json:"activation,omitempty"`
	Flows      []string         `json:"flows,omitempty"`     // the sequence flows that were taken
	Targets    []string         `json:"targets,omitempty"`   // elements that get a token without a flow: the target of a link, or an event that compensates while its token goes on
	Variables  tapedeck.Members `json:"variables,omitempty"` // it sets these variables
	Output     json.RawMessage  `json:"output,omitempty"`    // the result of one instance of a multi-instance element; nil for none
	Terminates bool             `json:"terminates,omitempty"`
	Note       string           `json:"note,omitempty"` // for people: nothing catches the escalation that it threw

	// Compensable says that the activation may be compensated later, or what has completed in it.
	Compensable bool `json:"compensable,omitempty"`
	Common
}

// WorkflowFailed says that an element failed. It is caught next, or it ends the process.
type WorkflowFailed struct {
	WorkflowElement
	Activation string `json:"activation,omitempty"`
	Message    string `json:"message"`
	Code       string `json:"code,omitempty"`
	Common
}

// WorkflowVariables sets variables and leaves all others unchanged.
type WorkflowVariables struct {
	Variables tapedeck.Members `json:"variables"`
	Scope     string           `json:"scope,omitempty"` // the activation that gets them; "" for the process
	Common
}

// WorkflowMessage is a message for an element that waits for it, now or later.
type WorkflowMessage struct {
	Name        string           `json:"name"`
	Correlation string           `json:"correlation,omitempty"` // "" fits every element that waits for the name
	Variables   tapedeck.Members `json:"variables,omitempty"`   // the element that receives it sets these variables
	Activation  string           `json:"activation,omitempty"`  // that sent it; "" if it is from outside
	Common
}

// WorkflowEnded ends a process.
type WorkflowEnded struct {
	Outcome string `json:"outcome,omitempty"` // "completed", "failed", "cancelled" or "terminated"; "" means completed
	Message string `json:"message,omitempty"`
	Code    string `json:"code,omitempty"`    // of the failure
	Element string `json:"element,omitempty"` // that failed or terminated
	Common
}
