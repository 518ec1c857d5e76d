package workflow

import (
	"errors"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// act does what an activation needs next. It may be called at any time: what is done
// already is in the state.
func (w *walker) act(a *view.WorkflowActivation) {
	n := w.node(a)
	switch {
	case n == nil:
	case a.Status == view.ActivationFailed && !a.Retry:
		w.handleFailure(n, a)
	case a.Retry, unprepared(n, a):
		w.again(n, a)
	case a.Reentered():
		w.actReentered(n, a)
	case a.Index == nil && w.armBoundary(n, a):
		w.look(a.ID)
	case isBody(a):
		w.loop(n, a)
	case n.Kind == bpmn.SubProcess, n.Kind == bpmn.CallActivity:
		w.actScope(n, a)
	case n.Kind.Activity():
		w.actTask(n, a)
	case n.Kind.Gateway():
		w.actGateway(n, a)
	default:
		w.actEvent(n, a)
	}
}

// actScope ends a sub-process or a call if no token is left in it.
func (w *walker) actScope(n *bpmn.Node, a *view.WorkflowActivation) {
	if w.armScope(a.ID, w.d.scopeOf(n)) {
		w.look(a.ID)
		return
	}
	if a.Inside > 0 {
		return
	}
	set := map[string]any{}
	if n.Kind == bpmn.CallActivity && n.PassOut {
		for name, v := range decodeAll(a.Variables) {
			set[name] = v
		}
	}
	w.leave(n, a, set)
}

func (w *walker) actTask(n *bpmn.Node, a *view.WorkflowActivation) {
	switch {
	case n.Agent != nil:
		w.tasks.want(a.ID)
	case n.Kind == bpmn.UserTask:
		w.ask(n, a)
	case n.Kind == bpmn.ScriptTask && n.Script != nil:
		w.script(n, a)
	case n.Kind == bpmn.ReceiveTask && n.Event != nil:
		w.catch(n, a)
	case n.Kind == bpmn.SendTask && n.Event != nil:
		w.send(n, a)
	default:
		w.leave(n, a, nil) // work that no program does
	}
}

func (w *walker) script(n *bpmn.Node, a *view.WorkflowActivation) {
	env := w.env(a.ID)
	assigned, value, err := n.Script.Lines.Run(w.ctx, env)
	if err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	set := map[string]any{}
	for name, v := range assigned {
		set[name] = v
	}
	if n.Script.Result != "" {
		set[n.Script.Result] = value
	}
	w.leave(n, a, set)
}

func (w *walker) actGateway(n *bpmn.Node, a *view.WorkflowActivation) {
	if n.Kind != bpmn.EventBasedGateway {
		w.leave(n, a, nil)
		return
	}
	for _, f := range n.Out {
		if waits(a, f.To.ID) {
			continue
		}
		if !w.arm(f.To, a.ID) {
			return // it has failed
		}
	}
}

func (w *walker) actEvent(n *bpmn.Node, a *view.WorkflowActivation) {
	kind := bpmn.EventKind("")
	if n.Event != nil {
		kind = n.Event.Kind
	}
	throws := n.Kind == bpmn.EndEvent || n.Kind == bpmn.ThrowEvent
	switch {
	case n.Kind == bpmn.CatchEvent && a.Trigger == nil && kind != "":
		w.catch(n, a)
	case !throws:
		w.leave(n, a, triggered(n, a))
	case kind == bpmn.MessageEvent:
		w.send(n, a)
	case kind == bpmn.SignalEvent:
		w.broadcast(n, a)
	case kind == bpmn.ErrorEvent:
		w.fail(a.ID, n.Event.Code, errorText(n))
	case kind == bpmn.EscalationEvent:
		w.escalate(n, a)
	case kind == bpmn.CompensationEvent:
		w.throwCompensation(n, a)
	case kind == bpmn.TerminateEvent:
		w.emit(payload.WorkflowLeft{WorkflowElement: elementOf(n), Activation: a.ID, Terminates: true})
		w.look(a.Scope)
	case kind == bpmn.LinkEvent && n.LinkTarget != nil:
		w.emit(payload.WorkflowLeft{WorkflowElement: elementOf(n), Activation: a.ID, Targets: []string{n.LinkTarget.ID}})
	default:
		w.leave(n, a, nil)
	}
}

func errorText(n *bpmn.Node) string {
	if n.Event.CodeName != "" {
		return n.Event.CodeName
	}
	return "the error event " + title(n) + " was reached"
}

// triggered returns the variables that an event sets which has happened.
func triggered(n *bpmn.Node, a *view.WorkflowActivation) map[string]any {
	set := map[string]any{}
	if a.Trigger == nil {
		return set
	}
	for name, v := range decodeAll(a.Trigger.Variables) {
		set[name] = v
	}
	if n.Event != nil {
		if n.Event.CodeVariable != "" {
			set[n.Event.CodeVariable] = a.Trigger.Code
		}
		if n.Event.MessageVariable != "" {
			set[n.Event.MessageVariable] = a.Trigger.Message
		}
	}
	return set
}

// leave ends an activation: its outputs and the flows that it takes are one decision.
func (w *walker) leave(n *bpmn.Node, a *view.WorkflowActivation, set map[string]any) {
	w.leaveWith(n, a, set, payload.WorkflowLeft{})
}

// leaveWith ends an activation with a note for people, or with tokens at other elements.
func (w *walker) leaveWith(n *bpmn.Node, a *view.WorkflowActivation, set map[string]any, p payload.WorkflowLeft) {
	p.WorkflowElement, p.Activation = elementOf(n), a.ID
	err := w.compensable(n, a, &p)
	if err == nil {
		err = w.results(n, a, set, &p)
	}
	if err == nil {
		err = w.fits(sizeOf(p.Variables) + len(p.Output))
	}
	if err == nil && a.Index == nil {
		env := w.env(a.Scope)
		for name, v := range decodeAll(p.Variables) {
			env[name] = v
		}
		p.Flows, err = w.choose(n, env)
	}
	if err != nil {
		w.failWith(a.ID, codeOf(err), err)
		return
	}
	w.emit(p)
	w.look(a.Scope)
}

// codeOf returns the code of an element that fails because of an error.
func codeOf(err error) string {
	switch tapedeck.KindOf(err) {
	case tapedeck.TooLarge:
		return codeOutput
	case tapedeck.Limited:
		return codeLimit
	}
	return codeExpression
}

// results fills in the variables that an element sets when it ends. If it has outputs,
// only these leave it; of an instance with an output collection, only its output does.
func (w *walker) results(n *bpmn.Node, a *view.WorkflowActivation, set map[string]any, p *payload.WorkflowLeft) (err error) {
	seen := set
	if len(n.Outputs) > 0 && !isBody(a) {
		env := w.env(a.ID)
		for name, v := range set {
			env[name] = v
		}
		if set, err = w.mapped(n.Outputs, env); err != nil {
			return err
		}
		seen = env
	} else if a.Index != nil && n.Loop.OutputCollection != "" {
		set = nil
	}
	if p.Output, err = w.output(n, a, seen); err != nil {
		return err
	}
	p.Variables, err = encodeAll(set)
	return err
}

// choose returns the flows that an element takes when it ends.
func (w *walker) choose(n *bpmn.Node, env map[string]any) (flows []string, err error) {
	conditional := 0
	for _, f := range n.Out {
		if f == n.Default {
			continue
		}
		if f.Condition != nil && n.Kind != bpmn.ParallelGateway {
			conditional++
			ok, err := f.Condition.Bool(w.ctx, env)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			conditional--
		}
		flows = append(flows, f.ID)
		if n.Kind == bpmn.ExclusiveGateway {
			return flows, nil
		}
	}
	if n.Default != nil && (len(flows) == 0 || n.Kind != bpmn.InclusiveGateway && !anyConditional(n, flows)) {
		flows = append(flows, n.Default.ID)
	}
	if len(flows) == 0 && len(n.Out) > 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "no flow out of %s has a condition that is true, and there is no default flow", title(n))
	}
	return flows, nil
}

// anyConditional reports whether one of the taken flows has a condition. Then the default
// flow of a task is not taken.
func anyConditional(n *bpmn.Node, taken []string) bool {
	for _, f := range n.Out {
		for _, id := range taken {
			if f.ID == id && f.Condition != nil {
				return true
			}
		}
	}
	return false
}

// fail records that an activation failed.
func (w *walker) fail(id, code, message string) {
	a := w.fold.Open(id)
	if a == nil {
		return
	}
	n := w.node(a)
	w.emit(payload.WorkflowFailed{WorkflowElement: elementOf(n), Activation: id, Code: code, Message: cut(message)})
	w.look(id)
}

func (w *walker) failWith(id, code string, err error) {
	message := err.Error()
	var e *tapedeck.Error
	if errors.As(err, &e) {
		message = e.Message
		if where, ok := strings.CutSuffix(err.Error(), e.Error()); ok {
			message = where + message // such as the line of a script
		}
	}
	w.fail(id, code, message)
}

// maxMessage is the length of the text of a failure, in bytes.
const maxMessage = 2000
