package workflow

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// This file compensates activities that have completed (BPMN 2.0, 13.5.5). What compensates them
// runs in the event that throws the compensation: so it ends with it, and its errors are thrown
// from there.

// compensable notes in the workflow.left of an activation that it may be compensated. A
// sub-process in which nothing can be compensated is not kept.
func (w *walker) compensable(n *bpmn.Node, a *view.WorkflowActivation, p *payload.WorkflowLeft) error {
	byInside := isBody(a) || n.Handler == nil && n.Scope != nil && n.Scope.Compensation() == nil
	if !n.Compensable || byInside && len(a.Compensable) == 0 {
		return nil
	}
	if !isBody(a) && w.fold.Kept() >= view.MaxCompensable {
		return tapedeck.Errorf(tapedeck.Limited, "%d activities have completed and may be compensated, which is the limit", view.MaxCompensable)
	}
	p.Compensable = true
	return nil
}

// compensate takes the next step of an event that throws compensation. In a scope only one of
// them compensates at a time: otherwise an activity would be compensated before what was done
// after it.
func (w *walker) compensate() bool {
	if !w.d.compensates {
		return false
	}
	open, busy := w.fold.AllOpen(), map[string]bool{}
	for _, a := range open {
		busy[a.From] = busy[a.From] || a.Compensating != nil
	}
	for _, a := range open {
		n := w.node(a)
		if n == nil || !n.ThrowsCompensation() || a.Inside > 0 || a.Status == view.ActivationFailed {
			continue
		}
		scopes := w.compensated(n, a)
		if slices.ContainsFunc(scopes, func(scope string) bool { return busy[scope] }) {
			continue
		}
		if c := w.lastCompleted(n, a, scopes); c != nil {
			w.undo(c, a.ID)
		} else {
			w.leave(n, a, nil)
		}
		return true
	}
	return false
}

// compensated returns the scopes in which an event compensates: its own and, for one in an event
// sub-process, the one around that.
func (w *walker) compensated(n *bpmn.Node, a *view.WorkflowActivation) []string {
	scopes := []string{a.Scope}
	if around := w.fold.Open(a.Scope); around != nil && n.Parent != nil && n.Parent.Triggered {
		scopes = append(scopes, around.Scope)
	}
	return scopes
}

// lastCompleted returns what an event compensates next: the last that had completed before it
// was entered. It is nil if nothing is left.
func (w *walker) lastCompleted(n *bpmn.Node, a *view.WorkflowActivation, scopes []string) (last *view.WorkflowCompensable) {
	for _, scope := range scopes {
		for _, c := range slices.Backward(w.fold.Compensable(scope)) {
			if last != nil && c.Step < last.Step {
				break
			}
			if c.Step < a.Step && (n.Event.Activity == nil || n.Event.Activity.ID == c.Element) {
				last = c
				break
			}
		}
	}
	return last
}

// undo begins what compensates an activity: its handler, or the sub-process itself once more, in
// which all is compensated.
func (w *walker) undo(c *view.WorkflowCompensable, scope string) {
	n := w.d.Node(c.Element)
	if n.Handler != nil {
		n = n.Handler
	}
	w.begin(n, &entry{id: w.newID(), scope: scope, compensates: c})
}

// actRestored compensates what has completed in a sub-process: by its event sub-process for
// that or, without one, all in the reverse order of completion.
func (w *walker) actRestored(n *bpmn.Node, a *view.WorkflowActivation) {
	by := n.Scope.Compensation()
	switch {
	case a.Inside > 0:
	case by != nil && !a.Fired[by.ID]:
		w.happen(w.caught(&waiter{a, view.WorkflowWait{Element: by.ID}}, string(bpmn.CompensationEvent)))
	case by == nil && len(a.Compensable) > 0:
		w.undo(a.Compensable[len(a.Compensable)-1], a.ID)
	default:
		w.emit(payload.WorkflowLeft{WorkflowElement: elementOf(n), Activation: a.ID})
		w.look(a.Scope)
	}
}
