package workflow

import (
	"maps"
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

// throwCompensation compensates the next activity, or lets the token of the event go on if none
// is left. In a scope only one event compensates at a time: otherwise an activity would be
// compensated before what was done after it.
func (w *walker) throwCompensation(n *bpmn.Node, a *view.WorkflowActivation) {
	switch {
	case a.Inside > 0:
		return
	case n.Event.GoesOn && !w.wentOn(a):
		w.leaveWith(n, a, nil, payload.WorkflowLeft{Targets: []string{n.ID}})
		return
	}
	scopes := w.compensated(n, a)
	for _, scope := range scopes {
		if by := w.compensator(scope); by != "" && by != a.ID {
			w.blocked[scope] = append(w.blocked[scope], a.ID)
			return
		}
	}
	w.lock(scopes, a.ID)
	switch c := w.lastCompleted(n, a, scopes); {
	case c != nil:
		w.compensate(c, a.ID)
		return
	case n.Event.GoesOn:
		w.emit(payload.WorkflowLeft{WorkflowElement: elementOf(n), Activation: a.ID})
		w.look(a.Scope)
	default:
		w.leave(n, a, nil)
	}
	for _, scope := range scopes {
		w.compensator(scope) // none any more
	}
	w.wakeThrower()
}

// lock makes an event the one that compensates in scopes, until it ends.
func (w *walker) lock(scopes []string, id string) {
	if w.compensators == nil {
		w.compensators, w.blocked = map[string]string{}, map[string][]string{}
	}
	for _, scope := range scopes {
		w.compensators[scope] = id
	}
}

// compensator returns the event that compensates in a scope, "" for none.
func (w *walker) compensator(scope string) string {
	if id, locked := w.compensators[scope]; locked && w.fold.Open(id) == nil {
		delete(w.compensators, scope)
	}
	return w.compensators[scope]
}

// wakeThrower looks at an event that waits for another one which has ended. It reports false if
// there is none.
func (w *walker) wakeThrower() bool {
	for _, scope := range slices.Sorted(maps.Keys(w.blocked)) {
		for w.compensator(scope) == "" && len(w.blocked[scope]) > 0 {
			id := w.blocked[scope][0]
			if w.blocked[scope] = w.blocked[scope][1:]; w.fold.Open(id) != nil {
				w.look(id)
				return true
			}
		}
		if len(w.blocked[scope]) == 0 {
			delete(w.blocked, scope)
		}
	}
	return false
}

// wentOn reports whether an activation of an event that throws compensation has only its
// handlers: the token of the event did not wait for them, and is at later elements.
func (w *walker) wentOn(a *view.WorkflowActivation) bool {
	n := w.node(a)
	return a.Trigger != nil && n != nil && n.ThrowsCompensation()
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

// compensate begins what compensates an activity: its handler, or the sub-process itself once more, in
// which all is compensated.
func (w *walker) compensate(c *view.WorkflowCompensable, scope string) {
	n := w.d.Node(c.Element)
	if n.Handler != nil {
		n = n.Handler
	}
	w.begin(n, &entry{id: w.newID(), scope: scope, compensates: c})
}

// actReentered compensates what has completed in a sub-process: by its event sub-process for
// that or, without one, all in the reverse order of completion.
func (w *walker) actReentered(n *bpmn.Node, a *view.WorkflowActivation) {
	by := n.Scope.Compensation()
	switch {
	case a.Inside > 0:
	case by != nil && !a.Fired[by.ID]:
		w.happen(w.caught(&waiter{a, view.WorkflowWait{Element: by.ID}}, string(bpmn.CompensationEvent)))
	case by == nil && len(a.Compensable) > 0:
		w.compensate(a.Compensable[len(a.Compensable)-1], a.ID)
	default:
		w.emit(payload.WorkflowLeft{WorkflowElement: elementOf(n), Activation: a.ID})
		w.look(a.Scope)
	}
}
