package api

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// MaxDiagram is the largest diagram of a workflow, in bytes.
const MaxDiagram = 8 << 20

// A NewWorkflow stores a diagram under a name. The diagram becomes the current version of
// the name. Runs keep the version that they began with.
type NewWorkflow struct {
	Name string `json:"-"`
	BPMN string `json:"bpmn"` // the diagram, BPMN 2.0 as XML, at most 8 MiB
}

// A RunWorkflow starts a workflow, of a diagram or of a stored one: exactly one of BPMN and
// Name must be given. Nothing is started if the diagram, an agent or a variable is
// [tapedeck.Invalid].
type RunWorkflow struct {
	BPMN      string                     `json:"bpmn,omitempty"`      // the diagram, BPMN 2.0 as XML, at most 8 MiB
	Name      string                     `json:"name,omitempty"`      // of a stored workflow
	Version   string                     `json:"version,omitempty"`   // the digest of a version of the stored workflow, or its beginning; without it, the current version
	Process   string                     `json:"process,omitempty"`   // the id of the process to run; needed only if the diagram has several that could run
	Variables map[string]json.RawMessage `json:"variables,omitempty"` // the first variables, by name
	Agents    map[string]string          `json:"agents,omitempty"`    // agents of tasks, by the id of the element or by the job type; they replace those in the diagram
	Session   string                     `json:"session,omitempty"`   // run in this session; without it, in a new one
	Thread    string                     `json:"thread,omitempty"`    // without it "main"
	Title     string                     `json:"title,omitempty"`     // the title of a new session; without it, the name of the process
	Actor     string                     `json:"actor,omitempty"`     // the user, agent or program that starts it
}

// A CheckWorkflow asks what a diagram would do, without starting it. Exactly one of BPMN and
// Name must be given.
type CheckWorkflow struct {
	BPMN    string            `json:"bpmn,omitempty"`    // the diagram, BPMN 2.0 as XML, at most 8 MiB
	Name    string            `json:"name,omitempty"`    // of a stored workflow
	Version string            `json:"version,omitempty"` // the digest of a version of the stored workflow, or its beginning; without it, the current version
	Process string            `json:"process,omitempty"` // the id of the process to run; needed only if the diagram has several that could run
	Agents  map[string]string `json:"agents,omitempty"`  // agents of tasks, by the id of the element or by the job type; they replace those in the diagram
}

// Workflows lists the stored workflows, by name.
type Workflows struct {
	Workflows []DiagramVersion `json:"workflows"` // the current version of each
}

// A DiagramVersion is a stored diagram.
type DiagramVersion struct {
	Name   string    `json:"name"`
	Digest string    `json:"digest"`          // "sha256:" and the digest of the diagram; it identifies the version
	Title  string    `json:"title,omitempty"` // the name of the process, for people
	Added  view.Time `json:"added_at"`        // when it became the current version
	Size   int64     `json:"size"`            // of the diagram, in bytes
}

// A Diagram describes a diagram and what a run of it needs.
type Diagram struct {
	Name    string               `json:"name,omitempty"`    // under which it is stored; absent if it is not stored
	Digest  string               `json:"digest"`            // "sha256:" and the digest of the diagram
	Title   string               `json:"title,omitempty"`   // the name of the process, for people
	Process string               `json:"process,omitempty"` // the id of the process; absent if the diagram has several
	Fields  []tapedeck.FormField `json:"fields,omitempty"`  // what the start asks for: variables of a run, by their names
	Tasks   []DiagramTask        `json:"tasks"`             // the tasks that agents do
	Unmet   []tapedeck.Problem   `json:"unmet,omitempty"`   // what a run still needs, such as an agent of that name; the run would be refused

	// Wanted are variables that a run has to give beside the fields: elements use them, and
	// none sets them. If a message can bring them, a run begins without them.
	Wanted []DiagramVariable `json:"wanted,omitempty"`

	// Warnings are what the diagram asks for and a run does not do.
	Warnings []tapedeck.Problem `json:"warnings,omitempty"`

	// Processes are those that can run of a stored diagram, if a run has to name one. A
	// check that names one says what that one needs.
	Processes []DiagramProcess `json:"processes,omitempty"`

	Versions []DiagramVersion `json:"versions,omitempty"` // of a stored workflow, the current one first
	BPMN     string           `json:"bpmn,omitempty"`     // the diagram, as XML; absent in the answer to a check
}

// A DiagramProcess is one of several processes of a diagram.
type DiagramProcess struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // for people
}

// A DiagramTask is a task that an agent does.
type DiagramTask struct {
	Element string `json:"element"`         // its id in the diagram
	Name    string `json:"name,omitempty"`  // for people
	Agent   string `json:"agent,omitempty"` // the agent that gets it; absent if nothing names one
	Type    string `json:"type,omitempty"`  // the job type or topic that the diagram gives
	Line    int    `json:"line"`            // in the diagram, from 1
}

// A DiagramVariable is a variable that a diagram uses and does not set.
type DiagramVariable struct {
	Name    string `json:"name"`
	Element string `json:"element"` // where it is used first: its id in the diagram
	Line    int    `json:"line"`    // in the diagram, from 1

	// FromMessage says that a message may bring the variable: a run begins without it.
	FromMessage bool `json:"from_message,omitempty"`
}

// SessionWorkflow is the workflow of a session as of an offset.
type SessionWorkflow struct {
	At       int64          `json:"at"`
	Workflow *view.Workflow `json:"workflow"` // null if the session, or its thread, has none
}
