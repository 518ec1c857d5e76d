package view

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// WorkflowFolds fold the workflows of all threads of a session. They do not keep the
// definitions: these are in the log, at the offset of each workflow. They can be stored as
// JSON and loaded again; see [CheckpointForm]. The zero value has no workflow.
type WorkflowFolds struct {
	threads []*WorkflowFold // in the order in which they got their first workflow
}

// Apply folds the next event, which must be active.
func (c *WorkflowFolds) Apply(e *tapedeck.Event) {
	if leavesWorkflow[e.Type] {
		for _, f := range c.threads {
			f.Apply(e)
		}
		return
	}
	if workflowFolds[e.Type] == nil {
		return
	}
	f := c.of(e.ThreadName())
	if f == nil {
		if e.Type != tapedeck.WorkflowStarted {
			return
		}
		f = NewWorkflowFold(e.ThreadName())
		c.threads = append(c.threads, f)
	}
	f.Apply(e)
	f.DropXML()
}

// of returns the fold of a thread, nil if it never had a workflow.
func (c *WorkflowFolds) of(thread string) *WorkflowFold {
	if i := slices.IndexFunc(c.threads, func(f *WorkflowFold) bool { return f.thread == thread }); i >= 0 {
		return c.threads[i]
	}
	return nil
}

// Workflow returns the workflow of a thread without its definition; it reports false if
// there is none. The thread "" is the main one if that has a workflow, and otherwise the
// first that has one. The caller must not change its maps.
func (c *WorkflowFolds) Workflow(thread string) (Workflow, bool) {
	f := c.of(thread)
	if thread == "" {
		if f = c.of(tapedeck.MainThread); f == nil && len(c.threads) > 0 {
			f = c.threads[0]
		}
	}
	if f == nil {
		return Workflow{}, false
	}
	return f.Workflow()
}

// savedWorkflow is a fold as JSON. The members of a [Workflow] that only a runner needs
// are not in its own JSON, so they are beside it, except what can be compensated: a runner
// folds the log.
type savedWorkflow struct {
	Thread   string                   `json:"thread"`
	Known    bool                     `json:"known,omitempty"`
	Head     Workflow                 `json:"head"`
	Triggers map[int]*WorkflowTrigger `json:"triggers,omitempty"` // of tokens, by their index
	Open     []savedActivation        `json:"open,omitempty"`
	Ended    []WorkflowActivation     `json:"ended,omitempty"`
	Earlier  int                      `json:"earlier,omitempty"`
	Elements []*WorkflowElement       `json:"elements,omitempty"`
	Inside   int64                    `json:"inside,omitempty"`
	Halted   bool                     `json:"halted,omitempty"`
	Fired    map[string]bool          `json:"fired,omitempty"`
	LastID   int64                    `json:"last_id,omitempty"`
}

type savedActivation struct {
	WorkflowActivation
	Items   json.RawMessage           `json:"items,omitempty"`
	Outputs map[int64]json.RawMessage `json:"outputs,omitempty"`
	Begun   int64                     `json:"begun,omitempty"`
	Done    int64                     `json:"done,omitempty"`
	Inside  int64                     `json:"inside,omitempty"`
	Sent    bool                      `json:"sent,omitempty"`
	Fired   map[string]bool           `json:"fired,omitempty"`
	Retry   bool                      `json:"retry,omitempty"`
	Flow    string                    `json:"flow,omitempty"`
	Trigger *WorkflowTrigger          `json:"trigger,omitempty"`
	Answers map[int]*tapedeck.Choice  `json:"answers,omitempty"` // of waits, by their index
}

// MarshalJSON encodes the folds, from which UnmarshalJSON restores them.
func (c *WorkflowFolds) MarshalJSON() ([]byte, error) {
	saved := make([]savedWorkflow, len(c.threads))
	for i, f := range c.threads {
		saved[i] = f.save()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // variables must come back unchanged
	err := enc.Encode(saved)
	return b.Bytes(), err
}

// UnmarshalJSON restores folds that were encoded by the same version of the program.
func (c *WorkflowFolds) UnmarshalJSON(b []byte) error {
	var saved []savedWorkflow
	if err := json.Unmarshal(b, &saved); err != nil {
		return err
	}
	c.threads = nil
	for i := range saved {
		c.threads = append(c.threads, saved[i].restore())
	}
	return nil
}

func (f *WorkflowFold) save() savedWorkflow {
	from := max(0, len(f.ended)-maxEndedActivations)
	s := savedWorkflow{
		Thread: f.thread, Known: f.known, Head: f.head, Triggers: map[int]*WorkflowTrigger{}, Ended: f.ended[from:], Earlier: f.earlier + from,
		Inside: f.inside, Halted: f.halted, Fired: f.fired, LastID: f.lastID,
	}
	for i := range f.head.Tokens {
		if t := f.head.Tokens[i].Trigger; t != nil {
			s.Triggers[i] = t
		}
	}
	for _, a := range f.AllOpen() {
		s.Open = append(s.Open, a.save())
	}
	for _, id := range f.order {
		s.Elements = append(s.Elements, f.elements[id])
	}
	return s
}

func (a *WorkflowActivation) save() savedActivation {
	s := savedActivation{
		WorkflowActivation: *a, Items: a.Items, Outputs: a.Outputs, Begun: a.Begun, Done: a.Done, Inside: a.Inside, Sent: a.Sent, Fired: a.Fired,
		Retry: a.Retry, Flow: a.Flow, Trigger: a.Trigger, Answers: map[int]*tapedeck.Choice{},
	}
	for i := range a.Waits {
		if a.Waits[i].Answer != nil {
			s.Answers[i] = a.Waits[i].Answer
		}
	}
	return s
}

func (s *savedWorkflow) restore() *WorkflowFold {
	f := NewWorkflowFold(s.Thread)
	f.known, f.head, f.ended, f.earlier = s.Known, s.Head, s.Ended, s.Earlier
	f.inside, f.halted, f.fired, f.lastID = s.Inside, s.Halted, s.Fired, s.LastID
	f.open, f.elements = map[string]*WorkflowActivation{}, map[string]*WorkflowElement{}
	for i, t := range s.Triggers {
		if i >= 0 && i < len(f.head.Tokens) {
			f.head.Tokens[i].Trigger = t
		}
	}
	for i := range s.Open {
		a := s.Open[i].restore()
		f.open[a.ID] = a
	}
	for _, el := range s.Elements {
		f.elements[el.Element] = el
		f.order = append(f.order, el.Element)
	}
	return f
}

func (s *savedActivation) restore() *WorkflowActivation {
	a := s.WorkflowActivation
	a.Items, a.Outputs, a.Begun, a.Done, a.Inside, a.Sent = s.Items, s.Outputs, s.Begun, s.Done, s.Inside, s.Sent
	a.Fired, a.Retry, a.Flow, a.Trigger = s.Fired, s.Retry, s.Flow, s.Trigger
	for i, answer := range s.Answers {
		if i >= 0 && i < len(a.Waits) {
			a.Waits[i].Answer = answer
		}
	}
	return &a
}
