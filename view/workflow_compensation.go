package view

import (
	"encoding/json"
	"slices"
)

// This file keeps which activations have completed and can be compensated.

// MaxCompensable is how many activations a [WorkflowFold] keeps that can be compensated.
const MaxCompensable = 10_000

// keep keeps an activation that completes, with what has completed in it. Of a loop, each
// instance is compensated.
func (f *WorkflowFold) keep(a *WorkflowActivation) {
	list := f.listOf(a.Scope)
	if list == nil || a.Count == nil && f.kept >= MaxCompensable {
		return
	}
	inside := a.Compensable
	a.Compensable = nil
	if a.Count != nil {
		for _, c := range inside {
			c.Step = f.steps
		}
		*list = append(*list, inside...)
		return
	}
	f.kept++
	*list = append(*list, &WorkflowCompensable{ID: a.ID, Element: a.Element, Step: f.steps, Variables: a.seen(), Inside: inside})
}

// seen returns the variables of an activation that what compensates it sees. Those of a called
// process are not among them, except the number of the instance.
func (a *WorkflowActivation) seen() map[string]json.RawMessage {
	if a.Type != "callActivity" {
		return a.Variables
	}
	if counter, has := a.Variables["loopCounter"]; has && a.Index != nil {
		return map[string]json.RawMessage{"loopCounter": counter}
	}
	return nil
}

// listOf returns what has completed directly in a scope, nil if the scope is not open.
func (f *WorkflowFold) listOf(scope string) *[]*WorkflowCompensable {
	if scope == "" {
		return &f.compensable
	}
	if a := f.open[scope]; a != nil {
		return &a.Compensable
	}
	return nil
}

// compensates notes what an activation compensates, if that is not "". It has completed in the
// scope of the activation, which is a sub-process that is compensated; or beside the event that
// throws the compensation; or, if that is in an event sub-process, beside this.
func (f *WorkflowFold) compensates(a *WorkflowActivation, id string) {
	if a.Compensates = id; id == "" {
		return
	}
	scope := a.Scope
	for range 3 {
		list := f.listOf(scope)
		if list == nil {
			return
		}
		for i, c := range slices.Backward(*list) {
			if c.ID == id {
				*list = slices.Delete(*list, i, i+1)
				f.take(a, c, scope)
				return
			}
		}
		if scope == "" {
			return
		}
		scope = f.open[scope].Scope
	}
}

// take makes an activation compensate what has completed in a scope. If it is the same element,
// what is in it is compensated; otherwise a handler does all.
func (f *WorkflowFold) take(a *WorkflowActivation, c *WorkflowCompensable, scope string) {
	a.Compensating, a.From = c, scope
	f.kept--
	if a.Reentered() {
		a.Compensable = c.Inside
	} else {
		f.kept -= countCompensable(c.Inside)
	}
	c.Inside = nil
}

// Reentered reports whether an activation is a sub-process that has completed before, and is
// compensated now.
func (a *WorkflowActivation) Reentered() bool {
	return a.Compensating != nil && a.Compensating.Element == a.Element
}

func countCompensable(list []*WorkflowCompensable) int {
	n := len(list)
	for _, c := range list {
		n += countCompensable(c.Inside)
	}
	return n
}

// Compensable returns what has completed directly in a scope and can be compensated, in the
// order of completion.
func (f *WorkflowFold) Compensable(scope string) []*WorkflowCompensable {
	if list := f.listOf(scope); list != nil {
		return *list
	}
	return nil
}

// Kept returns how many activations can be compensated, in all scopes and in what has completed.
func (f *WorkflowFold) Kept() int { return f.kept }
