package view

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// This file folds how activations begin and end.

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
		f.steps++
		a.Step = f.steps
		f.compensates(a, d.Compensates)
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
	for _, start := range d.Starts {
		f.put(WorkflowToken{Element: start, Scope: a.ID, Trigger: trigger})
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

func (f *WorkflowFold) left(e *tapedeck.Event) {
	var d payload.WorkflowLeft
	if !decode(e, &d) {
		return
	}
	a := f.open[d.Activation]
	if a == nil {
		return
	}
	if f.steps++; d.Compensable {
		f.keep(a)
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
	for _, target := range d.Targets { // what goes on compensates before anything else completes
		f.put(WorkflowToken{Element: target, Scope: a.Scope, Trigger: &WorkflowTrigger{By: "link"}})
	}
	for _, flow := range d.Flows {
		f.head.Flows[flow]++
		f.put(WorkflowToken{Flow: flow, Scope: a.Scope})
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

func (f *WorkflowFold) setStatus(a *WorkflowActivation, status string, e *tapedeck.Event) {
	a.Status = status
	if el := f.elements[a.Element]; el != nil && a.Items == nil {
		el.Status, el.Offset = status, e.Offset
	}
}

// keepEnded keeps an activation that has ended for the view.
func (f *WorkflowFold) keepEnded(a *WorkflowActivation, status string, e *tapedeck.Event) {
	if f.forgets {
		return
	}
	out := *a
	at := Time{e.Time}
	out.Status, out.EndOffset, out.EndedAt, out.Waits = status, new(e.Offset), &at, nil
	out.Items, out.Outputs, out.Compensable, out.Compensating = nil, nil, nil, nil
	if f.ended = append(f.ended, out); len(f.ended) >= 2*maxEndedActivations {
		f.earlier += len(f.ended) - maxEndedActivations
		f.ended = slices.Clone(f.ended[len(f.ended)-maxEndedActivations:])
	}
}

// end ends an activation and all that is in it.
func (f *WorkflowFold) end(a *WorkflowActivation, status string, e *tapedeck.Event) {
	f.empty(a.ID, e)
	f.kept -= countCompensable(a.Compensable)
	delete(f.open, a.ID)
	f.addInside(a.Scope, -1)
	if body := f.open[a.Scope]; body != nil && a.Index != nil {
		body.Done++
	}
	f.keepEnded(a, status, e)
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
