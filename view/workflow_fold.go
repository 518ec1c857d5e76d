package view

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
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
	f.head = Workflow{
		Offset: e.Offset, Thread: f.thread, Invocation: e.Invocation, Process: d.Process, Name: d.Name, Digest: d.Digest, XML: d.XML,
		Status: tapedeck.StatusRunning, Agents: d.Agents, StartedAt: Time{e.Time}, Variables: d.Variables, Flows: map[string]int64{},
		Tokens: []WorkflowToken{},
	}
	if f.head.Variables == nil {
		f.head.Variables = map[string]json.RawMessage{}
	}
	f.put(WorkflowToken{Element: d.Start})
}

// resumed continues the process in a new invocation. What failed is tried again.
func (f *WorkflowFold) resumed(e *tapedeck.Event) {
	w := &f.head
	w.Invocation, w.Status, w.EndedAt = e.Invocation, tapedeck.StatusRunning, nil
	w.Outcome, w.Message, w.Code, w.Element = "", "", "", ""
	for _, a := range f.open {
		if a.Status == ActivationFailed {
			a.Retry = true
		}
		for i := range a.Waits {
			a.Waits[i].Answer = nil // its question ended with the earlier run
		}
	}
}

func (f *WorkflowFold) entered(e *tapedeck.Event) {
	var d payload.WorkflowEntered
	if !decode(e, &d) || d.Activation == "" {
		return
	}
	for _, flow := range d.Flows {
		f.takeToken(d.Scope, flow, "")
	}
	var trigger *WorkflowTrigger
	if len(d.Flows) == 0 && d.Index == nil {
		trigger = f.takeToken(d.Scope, "", d.Element)
	}
	a := f.open[d.Activation]
	again := a != nil
	if !again {
		a = &WorkflowActivation{ID: d.Activation, Element: d.Element, Name: d.Name, Type: d.ElementType, Scope: d.Scope, Index: d.Index, Offset: e.Offset, StartedAt: Time{e.Time}, Trigger: trigger}
		f.open[a.ID] = a
		f.addInside(a.Scope, 1)
		if body := f.open[a.Scope]; body != nil && a.Index != nil {
			body.Begun++
		}
	}
	a.Status, a.Retry, a.Code, a.Message, a.Waits = ActivationActive, false, "", "", nil
	if n, err := strconv.ParseInt(a.ID, 10, 64); err == nil {
		f.lastID = max(f.lastID, n)
	}
	a.Fired = nil
	a.Thread, a.Attempt, a.Items, a.Variables = d.Thread, d.Attempt, d.Items, d.Variables
	if len(d.Flows) > 0 {
		a.Flow = d.Flows[0]
	}
	if a.Items != nil {
		a.Count = new(countItems(a.Items))
	}
	if d.Start != "" {
		f.put(WorkflowToken{Element: d.Start, Scope: a.ID, Trigger: trigger})
	}
	f.noteEntered(a, e, again)
}

func countItems(raw json.RawMessage) (n int64) {
	items := jsonobj.ReadArray(raw)
	for _, ok := items.Next(); ok; _, ok = items.Next() {
		n++
	}
	return n
}

// noteEntered updates the element of an activation that has begun, or begun again.
func (f *WorkflowFold) noteEntered(a *WorkflowActivation, e *tapedeck.Event, again bool) {
	el := f.elements[a.Element]
	if el == nil {
		el = &WorkflowElement{Element: a.Element, Name: a.Name, Type: a.Type}
		f.elements[a.Element] = el
		f.order = append(f.order, a.Element)
	}
	el.Offset, el.Status = e.Offset, a.Status
	if a.Thread != "" {
		el.Thread, el.Attempt = a.Thread, max(el.Attempt, a.Attempt)
	}
	if a.Items == nil {
		el.Entered++
		if !again {
			el.Open++
		}
	}
}

func (f *WorkflowFold) waiting(e *tapedeck.Event) {
	var d payload.WorkflowWaiting
	a, ok := f.waiter(e, &d, &d.Activation)
	if !ok || d.For == "" {
		return
	}
	w := WorkflowWait{
		Element: d.Element, For: d.For, Due: d.Due, Repeats: d.Repeats, Message: d.Message, Correlation: d.Correlation,
		Signal: d.Signal, Permission: d.Permission, Agent: d.Agent, Offset: e.Offset,
	}
	list := &f.head.Waits
	if a != nil {
		list = &a.Waits
	}
	*list = append(slices.DeleteFunc(slices.Clone(*list), func(old WorkflowWait) bool { return old.Element == w.Element }), w)
	if a != nil && (a.Element == w.Element && w.For != "agent" || a.Type == "eventBasedGateway") {
		f.setStatus(a, ActivationWaiting, e)
	}
}

// waiter decodes the data of an event and returns the activation that it names, nil for
// the process. It reports false if there is none.
func (f *WorkflowFold) waiter(e *tapedeck.Event, d any, id *string) (*WorkflowActivation, bool) {
	if !decode(e, d) {
		return nil, false
	}
	a := f.open[*id]
	return a, a != nil || *id == ""
}

func (f *WorkflowFold) setStatus(a *WorkflowActivation, status string, e *tapedeck.Event) {
	a.Status = status
	if el := f.elements[a.Element]; el != nil && a.Items == nil {
		el.Status, el.Offset = status, e.Offset
	}
}

func (f *WorkflowFold) caught(e *tapedeck.Event) {
	var d payload.WorkflowCaught
	a, ok := f.waiter(e, &d, &d.Activation)
	if !ok {
		return
	}
	if d.Received != nil || d.Sender != "" {
		f.head.Messages = slices.DeleteFunc(slices.Clone(f.head.Messages), func(m WorkflowMessage) bool {
			return m.Sender == d.Sender && (d.Received == nil || m.Offset == *d.Received)
		})
	}
	f.endWait(a, &d)
	if a != nil && a.Element == d.Element && !d.Within {
		a.Trigger = &WorkflowTrigger{By: d.By, Code: d.Code, Message: d.Message, Variables: d.Variables}
		f.setStatus(a, ActivationActive, e)
		return
	}
	f.trigger(e, a, &d)
}

// trigger puts a token to an event at the boundary of an activation, behind an
// event-based gateway, or to an event sub-process in the scope of an activation.
func (f *WorkflowFold) trigger(e *tapedeck.Event, a *WorkflowActivation, d *payload.WorkflowCaught) {
	scope, at := "", WorkflowToken{Element: d.Element, Trigger: &WorkflowTrigger{By: d.By, Code: d.Code, Message: d.Message, Variables: d.Variables}}
	if a != nil {
		scope = a.ID
	}
	switch {
	case d.Within && d.Interrupts:
		f.empty(scope, e)
	case d.Within:
	default:
		if a != nil {
			scope = a.Scope
		}
		if a != nil && d.Interrupts {
			status := ActivationInterrupted
			if a.Status == ActivationFailed {
				status = ActivationFailed
			} else if a.Type == "eventBasedGateway" {
				status = ActivationCompleted
			}
			f.end(a, status, e)
		}
	}
	at.Scope = scope
	f.put(at)
}

// endWait ends the wait for what has happened. A timer that is due again stays, and so
// does a message or a signal that interrupts nothing: it may come again.
func (f *WorkflowFold) endWait(a *WorkflowActivation, d *payload.WorkflowCaught) {
	list, fired := &f.head.Waits, &f.fired
	if a != nil {
		list, fired = &a.Waits, &a.Fired
	}
	own := a != nil && !d.Within && (a.Element == d.Element || a.Type == "eventBasedGateway")
	if !own && !d.Interrupts && (d.By == "message" || d.By == "signal") {
		return
	}
	*list = slices.Clone(*list)
	if i := slices.IndexFunc(*list, func(w WorkflowWait) bool { return w.Element == d.Element }); i >= 0 && d.Due != "" {
		(*list)[i].Due, (*list)[i].Repeats = d.Due, d.Repeats
		return
	}
	*list = slices.DeleteFunc(*list, func(w WorkflowWait) bool { return w.Element == d.Element })
	if *fired == nil {
		*fired = map[string]bool{}
	}
	(*fired)[d.Element] = true
}

func (f *WorkflowFold) left(e *tapedeck.Event) {
	var d payload.WorkflowLeft
	if !decode(e, &d) {
		return
	}
	a := f.open[d.Activation]
	if a == nil {
		return
	}
	f.end(a, ActivationCompleted, e)
	f.set(a.Scope, d.Variables)
	if d.Output != nil && a.Index != nil {
		if body := f.open[a.Scope]; body != nil {
			if body.Outputs == nil {
				body.Outputs = map[int64]json.RawMessage{}
			}
			body.Outputs[*a.Index] = d.Output
		}
	}
	if d.Terminates {
		f.empty(a.Scope, e)
		f.halted = f.halted || a.Scope == ""
	}
	for _, flow := range d.Flows {
		f.head.Flows[flow]++
		f.put(WorkflowToken{Flow: flow, Scope: a.Scope})
	}
	for _, target := range d.Targets {
		f.put(WorkflowToken{Element: target, Scope: a.Scope, Trigger: &WorkflowTrigger{By: "link"}})
	}
}

func (f *WorkflowFold) failed(e *tapedeck.Event) {
	var d payload.WorkflowFailed
	if !decode(e, &d) {
		return
	}
	a := f.open[d.Activation]
	if a == nil {
		return
	}
	a.Code, a.Message, a.Waits = d.Code, d.Message, nil
	f.setStatus(a, ActivationFailed, e)
	if el := f.elements[a.Element]; el != nil && a.Items == nil {
		el.Failed++
	}
}

func (f *WorkflowFold) variables(e *tapedeck.Event) {
	var d payload.WorkflowVariables
	if decode(e, &d) {
		f.set(d.Scope, d.Variables)
	}
}

func (f *WorkflowFold) message(e *tapedeck.Event) {
	var d payload.WorkflowMessage
	if !decode(e, &d) || d.Name == "" {
		return
	}
	if a := f.open[d.Activation]; a != nil {
		a.Sent = true
	}
	f.head.Messages = append(slices.Clip(f.head.Messages), WorkflowMessage{Offset: e.Offset, Name: d.Name, Correlation: d.Correlation, Variables: d.Variables, Sender: d.Activation})
}

func (f *WorkflowFold) answered(e *tapedeck.Event) {
	var d tapedeck.Choice
	if !decode(e, &d) || e.Invocation != "" && e.Invocation != f.head.Invocation {
		return
	}
	for _, a := range f.open {
		for i := range a.Waits {
			if a.Waits[i].Permission == d.ID && d.ID != "" && a.Waits[i].Answer == nil {
				a.Waits[i].Answer = &d
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

// put puts a token somewhere.
func (f *WorkflowFold) put(t WorkflowToken) {
	if t.Flow == "" && t.Element == "" {
		return
	}
	f.head.Tokens = append(f.head.Tokens, t)
	f.addInside(t.Scope, 1)
}

// takeToken removes a token that is on a flow or on its way to an element.
func (f *WorkflowFold) takeToken(scope, flow, element string) *WorkflowTrigger {
	i := slices.IndexFunc(f.head.Tokens, func(t WorkflowToken) bool { return t.Scope == scope && t.Flow == flow && t.Element == element })
	if i < 0 {
		return nil
	}
	trigger := f.head.Tokens[i].Trigger
	f.head.Tokens = slices.Delete(f.head.Tokens, i, i+1)
	f.addInside(scope, -1)
	return trigger
}

func (f *WorkflowFold) addInside(scope string, n int64) {
	if scope == "" {
		f.inside += n
	} else if a := f.open[scope]; a != nil {
		a.Inside += n
	}
}

// end ends an activation and all that is in it.
func (f *WorkflowFold) end(a *WorkflowActivation, status string, e *tapedeck.Event) {
	f.empty(a.ID, e)
	delete(f.open, a.ID)
	f.addInside(a.Scope, -1)
	if body := f.open[a.Scope]; body != nil && a.Index != nil {
		body.Done++
	}
	out := *a
	at := Time{e.Time}
	out.Status, out.EndOffset, out.EndedAt, out.Waits = status, new(e.Offset), &at, nil
	out.Items, out.Outputs = nil, nil
	if f.ended = append(f.ended, out); len(f.ended) >= 2*maxEndedActivations {
		f.earlier += len(f.ended) - maxEndedActivations
		f.ended = slices.Clone(f.ended[len(f.ended)-maxEndedActivations:])
	}
	el := f.elements[a.Element]
	if el == nil || a.Count != nil {
		return
	}
	el.Open--
	el.Offset = e.Offset
	if status == ActivationCompleted {
		el.Left++
	}
	if el.Open == 0 {
		el.Status = status
	}
}

// empty ends all that is in a scope, inner activations first.
func (f *WorkflowFold) empty(scope string, e *tapedeck.Event) {
	inside := f.inside
	if a := f.open[scope]; a != nil {
		inside = a.Inside
	} else if scope != "" {
		return
	}
	if inside == 0 {
		return
	}
	n := len(f.head.Tokens)
	f.head.Tokens = slices.DeleteFunc(f.head.Tokens, func(t WorkflowToken) bool { return t.Scope == scope })
	f.addInside(scope, int64(len(f.head.Tokens)-n))
	var in []*WorkflowActivation
	for _, a := range f.open {
		if a.Scope == scope {
			in = append(in, a)
		}
	}
	slices.SortFunc(in, func(a, b *WorkflowActivation) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.ID, b.ID))
	})
	for _, a := range in {
		f.end(a, ActivationInterrupted, e)
	}
}

// set sets variables. Each goes to the nearest scope that has it, up to the next call
// activity; one that no scope has goes to that call or to the process.
func (f *WorkflowFold) set(scope string, values map[string]json.RawMessage) {
	for name, value := range values {
		in := f.place(scope, name)
		if *in == nil {
			*in = map[string]json.RawMessage{}
		}
		(*in)[name] = value
	}
}

// place returns the variables of the scope in which a variable is set.
func (f *WorkflowFold) place(scope, name string) *map[string]json.RawMessage {
	for a := f.open[scope]; a != nil; a = f.open[a.Scope] {
		if _, has := a.Variables[name]; has || a.Type == "callActivity" && a.Items == nil {
			return &a.Variables
		}
	}
	return &f.head.Variables
}
