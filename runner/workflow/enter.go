package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// moveToken lets the first token that can move enter its element.
func (w *walker) moveToken() bool {
	tokens := w.fold.Head().Tokens
	for i := range tokens {
		t := tokens[i]
		n := w.target(&t)
		switch {
		case n == nil: // the diagram in the log is the one that ran, so this is a token that a client made up
			continue
		case t.Flow == "":
			w.enter(n, t.Scope, nil, t.Trigger)
		case n.Kind == bpmn.ParallelGateway && len(n.In) > 1:
			flows := w.arrived(n, t.Scope)
			if len(flows) < len(n.In) {
				continue
			}
			w.enter(n, t.Scope, flows, nil)
		case n.Kind == bpmn.InclusiveGateway && len(n.In) > 1:
			if w.mayGetMore(n, t.Scope) {
				continue
			}
			w.enter(n, t.Scope, w.arrived(n, t.Scope), nil)
		default:
			w.enter(n, t.Scope, []string{t.Flow}, nil)
		}
		return true
	}
	return false
}

// target returns the element that a token enters next.
func (w *walker) target(t *view.WorkflowToken) *bpmn.Node {
	if t.Flow == "" {
		return w.d.Node(t.Element)
	}
	if f := w.d.flow(t.Flow); f != nil {
		return f.To
	}
	return nil
}

// arrived returns the flows into an element that have a token, each once.
func (w *walker) arrived(n *bpmn.Node, scope string) (flows []string) {
	for _, f := range n.In {
		for _, t := range w.fold.Head().Tokens {
			if t.Flow == f.ID && t.Scope == scope {
				flows = append(flows, f.ID)
				break
			}
		}
	}
	return flows
}

// mayGetMore reports whether another token of the scope can still reach an inclusive
// gateway.
func (w *walker) mayGetMore(n *bpmn.Node, scope string) bool {
	for _, a := range w.fold.AllOpen() {
		if a.Scope == scope && w.d.reaches(a.Element, n) && !w.wentOn(a) {
			return true
		}
	}
	for i := range w.fold.Head().Tokens {
		t := &w.fold.Head().Tokens[i]
		to := w.target(t)
		if t.Scope == scope && to != nil && to != n && w.d.reaches(to.ID, n) {
			return true
		}
	}
	return false
}

// An entry is what a workflow.entered needs beside the element.
type entry struct {
	id      string
	scope   string
	flows   []string
	index   *int64 // of an instance
	trigger *view.WorkflowTrigger
	item    any // of an instance
	hasItem bool

	compensates *view.WorkflowCompensable // nil for nothing
}

// enter begins an activation of an element.
func (w *walker) enter(n *bpmn.Node, scope string, flows []string, trigger *view.WorkflowTrigger) {
	w.begin(n, &entry{id: w.newID(), scope: scope, flows: flows, trigger: trigger})
}

// again begins an activation once more after it failed, or because what it needs could
// not be evaluated.
func (w *walker) again(n *bpmn.Node, a *view.WorkflowActivation) {
	e := &entry{id: a.ID, scope: a.Scope, index: a.Index, trigger: a.Trigger, compensates: a.Compensating}
	if body := w.fold.Open(a.Scope); a.Index != nil && body != nil {
		e.item, e.hasItem = w.itemOf(body, *a.Index)
	}
	w.begin(n, e)
}

// begin yields the workflow.entered of an activation. If what the element needs cannot
// be evaluated, it fails at once.
func (w *walker) begin(n *bpmn.Node, e *entry) {
	p := payload.WorkflowEntered{
		WorkflowElement: payload.WorkflowElement{Element: n.ID, Name: n.Name}, ElementType: string(n.Kind),
		Activation: e.id, Scope: e.scope, Flows: e.flows, Index: e.index,
	}
	if e.compensates != nil {
		p.Compensates = e.compensates.ID
	}
	tooOften := w.fold.Element(n.ID).Entered >= int64(w.r.options.MaxEntries)
	err := w.prepare(n, e, &p)
	if err == nil {
		err = w.fits(sizeOf(p.Variables) + len(p.Items))
	}
	if err != nil || tooOften {
		p.Items, p.Variables, p.Starts = nil, nil, nil
		w.emit(p)
		if tooOften {
			w.fail(e.id, codeLimit, fmt.Sprintf("it was entered %d times, which is the limit", w.r.options.MaxEntries))
		} else {
			w.failWith(e.id, codeOf(err), err)
		}
		return
	}
	w.emit(p)
	w.look(e.id)
}

// prepare evaluates what an activation has from its beginning.
func (w *walker) prepare(n *bpmn.Node, e *entry, p *payload.WorkflowEntered) (err error) {
	env, local := w.env(e.scope), map[string]any{}
	if c := e.compensates; c != nil {
		seen := decodeAll(c.Variables)
		maps.Copy(env, seen)
		if p.Variables = c.Variables; c.Element == n.ID {
			return nil // a sub-process is as it was when it completed
		}
		if n.Kind != bpmn.CallActivity { // a called process sees only what is passed to it
			local = seen
		}
	}
	if n.Loop != nil && e.index == nil {
		p.Items, err = w.items(n, env)
		return err
	}
	if n.Agent != nil {
		p.Thread, p.Attempt = w.thread(n)
	}
	if s := w.d.scopeOf(n); s != nil {
		p.Starts = bpmn.IDs(s.Starts)
	}
	if e.index != nil {
		local["loopCounter"] = *e.index + 1
		if e.hasItem && n.Loop.Element != "" {
			local[n.Loop.Element] = e.item
		}
		if n.Loop.OutputElement != nil && n.Loop.OutputCollection != "" {
			for _, name := range n.Loop.OutputElement.Variables() {
				if _, has := local[name]; !has {
					local[name] = nil // the instance's own, so that parallel ones do not mix
				}
			}
		}
		maps.Copy(env, local)
	}
	if n.Kind == bpmn.CallActivity && n.PassIn {
		maps.Copy(local, env)
	}
	inputs, err := w.mapped(n.Inputs, env)
	if err != nil {
		return err
	}
	maps.Copy(local, inputs)
	if p.Variables, err = encodeAll(local); err == nil && n.Called != nil {
		p.Variables, err = withDefaults(w.ctx, n.Called.Start, p.Variables)
	}
	return err
}

// unprepared reports whether an activation began without what it needs, because that
// could not be evaluated, and a restart came before its failure was in the log.
func unprepared(n *bpmn.Node, a *view.WorkflowActivation) bool {
	switch c := a.Compensating; {
	case a.Reentered():
		return len(a.Variables) == 0 && len(c.Variables) > 0
	case n.Loop != nil && a.Index == nil:
		return !isBody(a)
	case c != nil && len(a.Variables) == 0 && len(c.Variables) > 0 && n.Kind != bpmn.CallActivity:
		return true
	}
	return len(a.Variables) == 0 && (len(n.Inputs) > 0 || a.Index != nil || n.Called != nil && asks(n.Called.Start))
}

// asks reports whether a process has variables from the form of its start event, nil for none.
func asks(start *bpmn.Node) bool {
	return start != nil && start.Form != nil && slices.ContainsFunc(start.Form.Fields, func(f bpmn.Field) bool { return f.Default != nil || f.Required })
}

// thread returns the name of the thread for the next agent of an element, and its
// number. An element may have the name that the second thread of another one would get;
// then that one takes the next number.
func (w *walker) thread(n *bpmn.Node) (string, int64) {
	prefix := ""
	if own := threadOf(w.in); own != tapedeck.MainThread {
		prefix = own + ":" // a workflow that is a task of another one
	}
	attempt := w.fold.Element(n.ID).Attempt + 1
	for attempt > 1 && w.d.Node(n.ID+"_"+strconv.FormatInt(attempt, 10)) != nil {
		attempt++
	}
	name, _ := payload.ElementThread(n.ID) // one that is too long gets another name
	name = prefix + name
	if attempt > 1 {
		name += "_" + strconv.FormatInt(attempt, 10)
	}
	if tapedeck.CheckID("the thread", name) != nil {
		sum := sha256.Sum256([]byte(name))
		name = "thread_x" + hex.EncodeToString(sum[:16])
	}
	return name, attempt
}
