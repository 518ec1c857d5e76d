package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A WorkflowFold folds the events of the newest workflow of a thread. Apply all events
// of the log that are active, in their order; it ignores those of others. The cost of
// an event does not grow with the number of events before it.
type WorkflowFold struct {
	thread string // "" as long as none is chosen
	fixed  bool   // the caller chose the thread
	head   Workflow
	known  bool // there is a workflow

	open     map[string]*WorkflowActivation
	ended    []WorkflowActivation // the newest; see maxEndedActivations
	earlier  int
	elements map[string]*WorkflowElement
	order    []string        // of elements
	inside   int64           // how many activations and tokens are directly in the process
	halted   bool            // a terminate event ended the process
	fired    map[string]bool // as in an activation, of the process
	lastID   int64           // the highest number that is the id of an activation
	forgets  bool            // ended activations are not kept

	compensable []*WorkflowCompensable // as in an activation, of the process
	steps       int64                  // how many activations have begun or ended
	kept        int                    // how many can be compensated, in all scopes and in what has completed
}

// NewWorkflowFold returns the fold of the workflow of a thread. "" is the main thread if
// that has a workflow, and otherwise the first thread that has one.
func NewWorkflowFold(thread string) *WorkflowFold {
	return &WorkflowFold{thread: thread, fixed: thread != ""}
}

var workflowFolds = map[string]func(*WorkflowFold, *tapedeck.Event){
	tapedeck.WorkflowStarted: (*WorkflowFold).started, tapedeck.WorkflowEntered: (*WorkflowFold).entered,
	tapedeck.WorkflowWaiting: (*WorkflowFold).waiting, tapedeck.WorkflowCaught: (*WorkflowFold).caught,
	tapedeck.WorkflowLeft: (*WorkflowFold).left, tapedeck.WorkflowFailed: (*WorkflowFold).failed,
	tapedeck.WorkflowVariables: (*WorkflowFold).variables, tapedeck.WorkflowMessage: (*WorkflowFold).message,
	tapedeck.WorkflowEnded: (*WorkflowFold).finished, tapedeck.PermissionAnswered: (*WorkflowFold).answered,
	tapedeck.RunFinished: (*WorkflowFold).runEnded, tapedeck.RunError: (*WorkflowFold).runEnded,
}

// Apply folds the next event.
func (f *WorkflowFold) Apply(e *tapedeck.Event) {
	if leavesWorkflow[e.Type] {
		f.interrupt(e)
		return
	}
	apply := workflowFolds[e.Type]
	if apply == nil {
		return
	}
	if e.Type == tapedeck.WorkflowStarted {
		if thread := e.ThreadName(); !f.fixed && (f.thread == "" || thread == tapedeck.MainThread) {
			f.thread = thread
		}
	} else if !f.known {
		return
	}
	if e.ThreadName() == f.thread && (e.Type == tapedeck.WorkflowStarted || e.Invocation == f.head.Invocation) {
		apply(f, e)
	}
}

// leavesWorkflow has the types after which an open run does not continue: the run of a
// parent in its fork, and the run before a jump, whose end the jump reverts.
var leavesWorkflow = map[string]bool{
	tapedeck.SessionForked: true, tapedeck.SessionRewound: true, tapedeck.SessionCleared: true, tapedeck.SessionOverwritten: true,
}

// interrupt ends a run at an event after which it does not continue.
func (f *WorkflowFold) interrupt(e *tapedeck.Event) {
	j, jumps := e.Jump()
	if f.known && f.head.Status == tapedeck.StatusRunning && (!jumps || j.Reverts(f.thread)) {
		f.head.Status = tapedeck.StatusInterrupted
	}
}

// Known reports whether there is a workflow.
func (f *WorkflowFold) Known() bool { return f.known }

// Thread returns the thread of the workflow, "" if there is none.
func (f *WorkflowFold) Thread() string { return f.thread }

// Workflow returns the workflow; it reports false if there is none. The caller must
// not change its maps, and the next Apply may.
func (f *WorkflowFold) Workflow() (Workflow, bool) {
	if !f.known {
		return Workflow{}, false
	}
	w := f.head
	w.Variables, w.Flows = maps.Clone(w.Variables), maps.Clone(w.Flows)
	w.Tokens, w.Messages, w.Waits = slices.Clone(w.Tokens), slices.Clone(w.Messages), slices.Clone(w.Waits)
	w.Elements = make([]WorkflowElement, len(f.order))
	for i, id := range f.order {
		w.Elements[i] = *f.elements[id]
	}
	dropped := max(0, len(f.ended)-maxEndedActivations)
	w.Activations, w.Earlier = append([]WorkflowActivation{}, f.ended[dropped:]...), f.earlier+dropped
	for _, a := range f.open {
		w.Activations = append(w.Activations, f.shown(a))
	}
	slices.SortFunc(w.Activations, func(a, b WorkflowActivation) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.ID, b.ID))
	})
	if w.Status != tapedeck.StatusRunning {
		w.Tokens, w.Waits = []WorkflowToken{}, nil
	}
	for i := range w.Elements {
		if status := f.stopped(); status != "" && w.Elements[i].Open > 0 {
			w.Elements[i].Status, w.Elements[i].Open = status, 0
		}
	}
	return w, true
}

// stopped returns the status that open activations of a workflow have that does not
// run, "" if it runs. The fold keeps them as they are, because a resume continues them.
func (f *WorkflowFold) stopped() string {
	switch f.head.Status {
	case tapedeck.StatusRunning:
		return ""
	case tapedeck.StatusInterrupted, tapedeck.StatusFailed:
		return ActivationInterrupted
	}
	return ActivationCancelled
}

// shown returns an open activation as the view shows it.
func (f *WorkflowFold) shown(a *WorkflowActivation) WorkflowActivation {
	out := *a
	out.Waits, out.Variables = slices.Clone(a.Waits), maps.Clone(a.Variables)
	if status := f.stopped(); status != "" {
		out.Waits = nil
		if out.Status != ActivationFailed {
			out.Status = status
		}
	}
	return out
}

func (f *WorkflowFold) started(e *tapedeck.Event) {
	var d payload.WorkflowStarted
	if !decode(e, &d) {
		return
	}
	if d.Resumes != "" && f.known {
		f.resumed(e)
		return
	}
	f.known, f.inside, f.halted, f.earlier, f.fired, f.lastID = true, 0, false, 0, nil, 0
	f.open, f.ended, f.elements, f.order = map[string]*WorkflowActivation{}, nil, map[string]*WorkflowElement{}, nil
	f.compensable, f.kept, f.steps = nil, 0, 0
	f.head = Workflow{
		Offset: e.Offset, Thread: f.thread, Invocation: e.Invocation, Process: d.Process, Name: d.Name, Digest: d.Digest, XML: d.XML,
		Status: tapedeck.StatusRunning, Agents: d.Agents, StartedAt: Time{e.Time}, Variables: d.Variables, Flows: map[string]int64{},
		Tokens: []WorkflowToken{},
	}
	if f.head.Variables == nil {
		f.head.Variables = map[string]json.RawMessage{}
	}
	for _, start := range d.Starts {
		f.put(WorkflowToken{Element: start})
	}
}

// resumed continues the process in a new invocation. What failed is tried again.
func (f *WorkflowFold) resumed(e *tapedeck.Event) {
	w := &f.head
	failed := w.Status == tapedeck.StatusFailed
	w.Invocation, w.Status, w.EndedAt = e.Invocation, tapedeck.StatusRunning, nil
	w.Outcome, w.Message, w.Code, w.Element = "", "", "", ""
	for _, a := range f.open {
		if a.Status == ActivationFailed {
			a.Retry = true
		}
		for i := range a.Waits {
			// An answer that the earlier run had no time to take counts, as when it was cancelled at
			// that moment. One that may be why that run failed does not: the question is asked again.
			if c := a.Waits[i].Answer; c != nil && (failed || c.Outcome == "cancelled") {
				a.Waits[i].Answer = nil
			}
		}
	}
}

func (f *WorkflowFold) finished(e *tapedeck.Event) {
	var d payload.WorkflowEnded
	if !decode(e, &d) {
		return
	}
	w := &f.head
	w.Outcome, w.Message, w.Code, w.Element, w.EndedAt = cmp.Or(d.Outcome, WorkflowCompleted), d.Message, d.Code, d.Element, &Time{e.Time}
	switch w.Outcome {
	case WorkflowFailed:
		w.Status = tapedeck.StatusFailed
	case WorkflowCancelled:
		w.Status = tapedeck.StatusCancelled
	default:
		w.Status = tapedeck.StatusComplete
	}
}

// runEnded stops a process whose run ended before the process did. It can be resumed.
func (f *WorkflowFold) runEnded(e *tapedeck.Event) {
	w := &f.head
	if e.Invocation != w.Invocation || w.Status != tapedeck.StatusRunning {
		return
	}
	var d struct {
		Message string `json:"message"`
		Code    string `json:"code"`
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	decode(e, &d)
	w.EndedAt = &Time{e.Time}
	switch {
	case e.Type == tapedeck.RunFinished && d.Outcome.Type == payload.OutcomeCancelled:
		w.Status, w.Outcome = tapedeck.StatusCancelled, WorkflowCancelled
	case e.Type == tapedeck.RunError && (d.Code == tapedeck.CodeInterrupted || d.Code == tapedeck.CodeLeaseExpired):
		w.Status, w.EndedAt = tapedeck.StatusInterrupted, nil
	case e.Type == tapedeck.RunError:
		w.Status, w.Outcome, w.Message, w.Code = tapedeck.StatusFailed, WorkflowFailed, d.Message, d.Code
	default:
		w.Status, w.Outcome = tapedeck.StatusComplete, WorkflowCompleted
	}
}
