package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// This file folds what activations wait for, and what ends the waits.

func (f *WorkflowFold) waiting(e *tapedeck.Event) {
	var d payload.WorkflowWaiting
	a, ok := f.waiter(e, &d, &d.Activation)
	if !ok || d.For == "" {
		return
	}
	w := WorkflowWait{
		Element: d.Element, For: d.For, Due: d.Due, Repeats: d.Repeats, Message: d.Message, Correlation: d.Correlation,
		Signal: d.Signal, Permission: d.Permission, Agent: d.Agent, Within: d.Within, Offset: e.Offset,
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
	if sender := f.open[d.Sender]; sender != nil {
		sender.Sent = true
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
		list := &f.head.Waits
		if a != nil {
			list = &a.Waits
		}
		*list = slices.DeleteFunc(slices.Clone(*list), func(w WorkflowWait) bool { return w.Within }) // no other one begins after it
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
// does what else interrupts nothing: it may come again.
func (f *WorkflowFold) endWait(a *WorkflowActivation, d *payload.WorkflowCaught) {
	list, fired := &f.head.Waits, &f.fired
	if a != nil {
		list, fired = &a.Waits, &a.Fired
	}
	own := a != nil && !d.Within && (a.Element == d.Element || a.Type == "eventBasedGateway")
	if !own && !d.Interrupts && d.By != "timer" {
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
