package workflow

import (
	"strconv"

	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// This file throws errors and escalations: what catches them is looked for from the inside
// outwards (BPMN 2.0, 10.5.1 and 10.5.7).

// handleFailure throws the error of an activation that failed. If nothing catches it, the
// process fails.
func (w *walker) handleFailure(n *bpmn.Node, failed *view.WorkflowActivation) {
	if on := w.catcher(bpmn.ErrorEvent, failed.Code, failed); on != nil {
		caught := w.caught(on, string(bpmn.ErrorEvent))
		caught.Code, caught.Message = failed.Code, failed.Message
		w.emit(caught)
		return
	}
	message := title(n) + " failed"
	if failed.Message != "" {
		message += ": " + failed.Message
	}
	w.emit(payload.WorkflowEnded{Outcome: view.WorkflowFailed, Code: failed.Code, Element: n.ID, Message: message})
}

// escalate throws the escalation of an event, and lets its token go on unless what catches it
// has interrupted it. An escalation that nothing catches is no failure.
func (w *walker) escalate(n *bpmn.Node, a *view.WorkflowActivation) {
	if a.Sent { // it was caught before a restart
		w.leave(n, a, nil)
		return
	}
	on := w.catcher(bpmn.EscalationEvent, n.Event.Code, a)
	if on == nil {
		w.leaveWith(n, a, nil, payload.WorkflowLeft{Note: uncaught(n.Event)})
		return
	}
	caught := w.caught(on, string(bpmn.EscalationEvent))
	caught.Code, caught.Message, caught.Sender = n.Event.Code, n.Event.CodeName, a.ID
	w.emit(caught)
	if w.fold.Open(a.ID) != nil {
		w.leave(n, a, nil)
	}
}

func uncaught(event *bpmn.Event) string {
	if event.Code == "" {
		return "nothing catches the escalation, which has no code"
	}
	return "nothing catches the escalation " + strconv.Quote(event.Code)
}

// catcher returns what catches an error or an escalation: an event at the boundary of the
// activation that throws it, or an event sub-process beside that, or the same of what is
// around it. It is nil if nothing does.
func (w *walker) catcher(kind bpmn.EventKind, code string, from *view.WorkflowActivation) *waiter {
	for a := from; a != nil; a = w.fold.Open(a.Scope) {
		at := w.node(a)
		if a.Index == nil && !a.Reentered() {
			if b := catching(at.Boundary, kind, code); b != nil {
				return &waiter{a, view.WorkflowWait{Element: b.ID}}
			}
		}
		around := w.fold.Open(a.Scope)
		if at.Triggered || around != nil && (isBody(around) || around.Reentered()) {
			continue // an event sub-process does not catch what is thrown in it, and one that has completed nothing
		}
		var outer *bpmn.Node
		if around != nil {
			outer = w.node(around)
		}
		scope := w.d.scopeOf(outer)
		if scope == nil {
			continue // around it is an event that throws compensation
		}
		if s := catching(scope.EventSubProcesses, kind, code); s != nil {
			return &waiter{around, view.WorkflowWait{Element: s.ID}}
		}
	}
	return nil
}

// catching returns the element of a list that catches a code: the first one for it, otherwise
// the first one for all codes.
func catching(list []*bpmn.Node, kind bpmn.EventKind, code string) (found *bpmn.Node) {
	for _, n := range list {
		event := n.CatchEvent()
		switch {
		case event == nil || event.Kind != kind:
		case event.Code == code && code != "":
			return n
		case event.Code == "" && found == nil:
			found = n
		}
	}
	return found
}
