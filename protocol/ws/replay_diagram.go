package ws

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Types of the frames of a diagram, and of the answer to a user task.
const (
	typeStarted   = "workflow.started"
	typeCompleted = "workflow.completed"
	typeActivated = "element.activated"
	typeElement   = "element.completed"
	typeTaskError = "task.error"
	typeCancelled = "task.cancelled"
	typeUserTask  = "userTask.created"
	typePathTaken = "gateway.path_taken"
	typeTaskDone  = "userTask.complete"
)

// outcomeSuccess is how a page of this protocol knows a workflow that did not fail.
const outcomeSuccess = "success"

// A diagramFrame says what happens in the diagram.
type diagramFrame struct {
	Type         string          `json:"type"`
	ElementID    string          `json:"elementId,omitempty"`
	ElementType  string          `json:"elementType,omitempty"`
	ElementName  string          `json:"elementName,omitempty"`
	InstanceID   string          `json:"instanceId,omitempty"`
	WorkflowName string          `json:"workflowName,omitempty"`
	Outcome      string          `json:"outcome,omitempty"`
	Duration     *float64        `json:"duration,omitempty"` // in seconds
	Result       json.RawMessage `json:"result,omitempty"`
	FlowID       string          `json:"flowId,omitempty"`
	Condition    json.RawMessage `json:"condition,omitempty"`
	TaskInstance *taskInstance   `json:"taskInstance,omitempty"`
	Action       string          `json:"action,omitempty"`
	Error        *taskError      `json:"error,omitempty"`
	Retryable    *bool           `json:"retryable,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Timestamp    string          `json:"timestamp"`
}

type taskError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

// A taskInstance is a user task that waits. The log does not know who shall do it, how
// urgent it is and when it is due.
type taskInstance struct {
	TaskID          string                     `json:"taskId"`
	TaskName        string                     `json:"taskName"`
	Assignee        string                     `json:"assignee"`
	CandidateGroups []string                   `json:"candidateGroups"`
	Priority        string                     `json:"priority"`
	DueDate         *string                    `json:"dueDate"`
	FormFields      []string                   `json:"formFields"`
	Data            map[string]json.RawMessage `json:"data"`
}

// A diagram turns the events of workflows that the server runs into frames.
type diagram struct {
	processes map[string]*process // by thread
	tasks     map[string]userTask // that wait, by the id of the question
}

type process struct {
	instance    string
	run         string // the invocation that walks it
	begun       time.Time
	activations map[string]activation // that are open
}

type activation struct {
	element  string
	kind     string // BPMN name of the element
	begun    time.Time
	instance bool // of a loop: the frames are about the element as a whole
}

type userTask struct{ id, element string }

func newDiagram() *diagram {
	return &diagram{processes: map[string]*process{}, tasks: map[string]userTask{}}
}

// begin learns a workflow as it is.
func (d *diagram) begin(w *view.Workflow) {
	if w.Status != tapedeck.StatusRunning && w.Status != tapedeck.StatusInterrupted {
		return
	}
	p := &process{instance: w.Invocation, run: w.Invocation, begun: w.StartedAt.Time, activations: map[string]activation{}}
	d.processes[w.Thread] = p
	for i := range w.Activations {
		a := &w.Activations[i]
		if a.EndedAt != nil {
			continue
		}
		p.activations[a.ID] = activation{a.Element, a.Type, a.StartedAt.Time, a.Index != nil}
		for i := range a.Waits {
			if wait := &a.Waits[i]; wait.Permission != "" && wait.Answer == nil {
				d.tasks[wait.Permission] = taskOf(wait.Element, wait.Permission, a.Index != nil)
			}
		}
	}
}

// taskOf returns a user task. Its id is its element, as in the source's protocol; in a loop
// several wait at once, and their ids are those of their questions.
func taskOf(element, permission string, inLoop bool) userTask {
	if inLoop {
		return userTask{permission, element}
	}
	return userTask{element, element}
}

// frames returns what an event says about the diagram.
func (d *diagram) frames(e *tapedeck.Event) (out []*diagramFrame) {
	switch e.Type {
	case tapedeck.WorkflowStarted, tapedeck.WorkflowEntered, tapedeck.WorkflowLeft, tapedeck.WorkflowFailed, tapedeck.WorkflowEnded:
		out = d.walked(e)
	case tapedeck.RunFinished, tapedeck.RunError:
		out = d.runEnded(e)
	case tapedeck.WorkflowCaught:
		out = d.caught(e)
	case tapedeck.WorkflowWaiting:
		var w payload.WorkflowWaiting
		if e.Unpack(&w) && w.Permission != "" {
			d.tasks[w.Permission] = taskOf(w.Element, w.Permission, d.of(e).activations[w.Activation].instance)
		}
	case tapedeck.PermissionRequested:
		var q payload.PermissionRequested
		if e.Unpack(&q) {
			out = d.asked(q.ID, q.Message, q.Form)
		}
	case tapedeck.PermissionAnswered:
		var c payload.PermissionAnswered
		if _ = e.Unpack(&c); c.Option == "" && d.tasks[c.ID].element != "" {
			out = []*diagramFrame{{Type: typeCancelled, ElementID: d.tasks[c.ID].element, Reason: "its question was withdrawn"}}
		}
		delete(d.tasks, c.ID)
	}
	for _, f := range out {
		f.Timestamp = timestamp(e.Time)
	}
	return out
}

// of returns the process of an event. It exists already, unless a client has written a
// workflow that was never started.
func (d *diagram) of(e *tapedeck.Event) *process {
	p := d.processes[e.ThreadName()]
	if p == nil {
		p = &process{instance: e.Invocation, run: e.Invocation, begun: e.Time, activations: map[string]activation{}}
		d.processes[e.ThreadName()] = p
	}
	return p
}

// walked returns the frames of a step of a workflow. A workflow that continues after a
// restart is the same instance: its page would clear what it shows at a workflow.started.
func (d *diagram) walked(e *tapedeck.Event) []*diagramFrame {
	switch e.Type {
	case tapedeck.WorkflowStarted:
		var s payload.WorkflowStarted
		if !e.Unpack(&s) {
			return nil
		}
		if p := d.processes[e.ThreadName()]; p != nil && s.Resumes != "" {
			p.run = e.Invocation
			return nil
		}
		delete(d.processes, e.ThreadName())
		name := cmp.Or(s.Name, s.Process)
		return []*diagramFrame{{Type: typeStarted, InstanceID: cmp.Or(d.of(e).instance, e.ThreadName()), WorkflowName: cmp.Or(name, "workflow")}}
	case tapedeck.WorkflowEntered:
		var s payload.WorkflowEntered
		if !e.Unpack(&s) {
			return nil
		}
		d.of(e).activations[s.Activation] = activation{s.Element, s.ElementType, e.Time, s.Index != nil}
		if s.Index != nil {
			return nil
		}
		return []*diagramFrame{{Type: typeActivated, ElementID: s.Element, ElementType: s.ElementType, ElementName: cmp.Or(s.Name, s.Element)}}
	case tapedeck.WorkflowFailed:
		var s payload.WorkflowFailed
		_ = e.Unpack(&s)
		return []*diagramFrame{{Type: typeTaskError, ElementID: s.Element, Error: &taskError{s.Message, cmp.Or(s.Code, "error")}, Retryable: new(false)}}
	case tapedeck.WorkflowLeft:
		return d.left(e)
	}
	var s payload.WorkflowEnded
	_ = e.Unpack(&s)
	return d.completed(e, cmp.Or(s.Outcome, view.WorkflowCompleted))
}

// completed returns the frame of the end of a process.
func (d *diagram) completed(e *tapedeck.Event, outcome string) []*diagramFrame {
	p := d.of(e)
	delete(d.processes, e.ThreadName())
	if outcome == view.WorkflowCompleted || outcome == view.WorkflowTerminated {
		outcome = outcomeSuccess
	}
	return []*diagramFrame{{Type: typeCompleted, InstanceID: cmp.Or(p.instance, e.ThreadName()), Outcome: outcome, Duration: since(p.begun, e)}}
}

// runEnded returns the frame of a process that has not ended when its run ends, such as by a
// cancel. After a crash the process continues, so there is no frame.
func (d *diagram) runEnded(e *tapedeck.Event) []*diagramFrame {
	p := d.processes[e.ThreadName()]
	if p == nil || p.run != e.Invocation {
		return nil
	}
	var end struct {
		Code    string          `json:"code"`
		Outcome payload.Outcome `json:"outcome"`
	}
	_ = e.Unpack(&end)
	switch {
	case end.Code == tapedeck.CodeInterrupted, end.Code == tapedeck.CodeLeaseExpired:
		return nil
	case e.Type == tapedeck.RunError:
		return d.completed(e, view.WorkflowFailed)
	case end.Outcome.Type == payload.OutcomeCancelled:
		return d.completed(e, view.WorkflowCancelled)
	}
	return d.completed(e, view.WorkflowCompleted)
}

// caught returns the frame of an element that an event at its boundary ends. A failure that
// is caught has had its frame.
func (d *diagram) caught(e *tapedeck.Event) []*diagramFrame {
	var c payload.WorkflowCaught
	if !e.Unpack(&c) || !c.Interrupts || c.Within {
		return nil
	}
	p := d.of(e)
	a := p.activations[c.Activation]
	delete(p.activations, c.Activation)
	maps.DeleteFunc(d.tasks, func(_ string, t userTask) bool { return t.element == a.element })
	if a.element == "" || a.element == c.Element || c.By == "error" {
		return nil
	}
	return []*diagramFrame{{Type: typeCancelled, ElementID: a.element, Reason: "the event " + cmp.Or(c.Name, c.Element) + " ended it"}}
}

func (d *diagram) left(e *tapedeck.Event) (out []*diagramFrame) {
	var s payload.WorkflowLeft
	if !e.Unpack(&s) {
		return nil
	}
	p := d.of(e)
	a, known := p.activations[s.Activation]
	delete(p.activations, s.Activation)
	switch {
	case a.instance:
		return nil
	case !known:
		a.begun = e.Time
	case strings.HasSuffix(a.kind, "Gateway"):
		condition := json.RawMessage("null") // the page does not read it
		if a.kind == "parallelGateway" {
			condition = json.RawMessage(`"parallel"`)
		}
		for _, flow := range s.Flows {
			out = append(out, &diagramFrame{Type: typePathTaken, ElementID: s.Element, FlowID: flow, Condition: condition})
		}
	}
	return append(out, &diagramFrame{Type: typeElement, ElementID: s.Element, Duration: since(a.begun, e), Result: json.RawMessage("null")})
}

func since(begun time.Time, e *tapedeck.Event) *float64 { return new(e.Time.Sub(begun).Seconds()) }

// asked returns the frame of a user task that waits for an answer. Other questions, such as
// those of agents, are no frames.
func (d *diagram) asked(permission, message string, form []tapedeck.FormField) []*diagramFrame {
	t, ok := d.tasks[permission]
	if !ok {
		return nil
	}
	title, _, _ := strings.Cut(message, "\n")
	i := &taskInstance{
		TaskID: t.id, TaskName: cmp.Or(title, t.element), CandidateGroups: []string{}, Priority: "Medium",
		FormFields: []string{}, Data: map[string]json.RawMessage{},
	}
	for j := range form {
		i.FormFields = append(i.FormFields, form[j].ID)
		if form[j].Default != nil {
			i.Data[form[j].ID] = form[j].Default
		}
	}
	return []*diagramFrame{{Type: typeUserTask, ElementID: t.element, TaskInstance: i, Action: "showApprovalForm"}}
}

// sendDiagram sends the frames of an event: those of the server's workflows, and those that
// a backend has sent.
func (r *replay) sendDiagram(e *tapedeck.Event) error {
	if e.Type == passedType {
		if frame := passed(e); frame != nil {
			return r.send(frame)
		}
		return nil
	}
	unknown := r.diagram.processes[e.ThreadName()] == nil
	frames := append(r.diagram.frames(e), r.cancelled(e)...)
	if unknown && e.Type == tapedeck.WorkflowStarted {
		more, err := r.resumed(e)
		if err != nil {
			return err
		}
		frames = append(frames, more...)
	}
	for _, f := range frames {
		if err := r.sendMessage(f); err != nil {
			return err
		}
	}
	return nil
}

// resumed returns the frames of what a workflow does that continues after its
// workflow.completed: the log has only what begins after that.
func (r *replay) resumed(e *tapedeck.Event) (out []*diagramFrame, err error) {
	var s payload.WorkflowStarted
	if !e.Unpack(&s) || s.Resumes == "" {
		return nil, nil
	}
	w, err := r.Views.Workflow(r.ctx, r.session, e.ThreadName(), e.Offset+1)
	if err != nil || w == nil {
		return nil, err
	}
	r.diagram.begin(w)
	for i := range w.Elements {
		for _, f := range stateOf(w, &w.Elements[i]) {
			if f.Type == typeActivated {
				f.Timestamp = timestamp(e.Time)
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// cancelled returns the frame of a run that was cancelled in an element of a workflow.
func (r *replay) cancelled(e *tapedeck.Event) []*diagramFrame {
	var d payload.RunFinished
	if e.Type != tapedeck.RunFinished || !e.Unpack(&d) || d.Outcome == nil || d.Outcome.Type != payload.OutcomeCancelled || !r.elements.entered(e.ThreadName()) {
		return nil
	}
	return []*diagramFrame{{Type: typeCancelled, ElementID: r.elements.of(e.ThreadName()).element, Reason: "its run was cancelled", Timestamp: timestamp(e.Time)}}
}

// sendNow sends what the diagram shows now: the histories, the state of each element, and the
// user tasks that wait. now and w are the session and its workflow as of at; w is nil if
// there is none.
func (r *replay) sendNow(now *view.Snapshot, w *view.Workflow, at int64) error {
	var sent []string
	for i := range now.Threads {
		element := r.elements.of(now.Threads[i].Name).element
		if element == "" || slices.Contains(sent, element) {
			continue
		}
		sent = append(sent, element)
		h, err := r.history(element, at)
		if err == nil && len(h.Messages)+len(h.Thinking)+len(h.Tools) > 0 {
			err = r.sendMessage(h)
		}
		if err != nil {
			return err
		}
	}
	if w == nil {
		return nil
	}
	var frames []*diagramFrame
	for i := range w.Elements {
		frames = append(frames, stateOf(w, &w.Elements[i])...)
	}
	for i := range now.Permissions {
		if p := &now.Permissions[i]; p.Status == view.PermissionOpen {
			var form []tapedeck.FormField
			_ = json.Unmarshal(p.Form, &form) // a form of another shape shows nothing
			frames = append(frames, r.diagram.asked(p.ID, p.Message, form)...)
		}
	}
	for _, f := range frames {
		f.Timestamp = timestamp(time.Now())
		if err := r.sendMessage(f); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the frame after which a page shows an element as it is.
func stateOf(w *view.Workflow, el *view.WorkflowElement) []*diagramFrame {
	f := &diagramFrame{ElementID: el.Element}
	switch el.Status {
	case view.ActivationActive, view.ActivationWaiting:
		f.Type, f.ElementType, f.ElementName = typeActivated, el.Type, cmp.Or(el.Name, el.Element)
	case view.ActivationCompleted:
		f.Type, f.Duration, f.Result = typeElement, new(float64(0)), json.RawMessage("null")
	case view.ActivationFailed:
		f.Type, f.Error, f.Retryable = typeTaskError, &taskError{Type: "error"}, new(false)
		for i := range w.Activations {
			if a := &w.Activations[i]; a.Element == el.Element && a.Status == el.Status {
				f.Error.Message, f.Error.Type = a.Message, cmp.Or(a.Code, "error")
			}
		}
	case view.ActivationCancelled, view.ActivationInterrupted:
		f.Type, f.Reason = typeCancelled, "it was "+el.Status
	default:
		return nil
	}
	return []*diagramFrame{f}
}
