package workflow

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
	"github.com/tapedeck/tapedeck/view"
)

// maxInstances is how many instances a multi-instance element can have, and maxAsked how many
// of them can ask people at once: a run has at most so many open questions.
const (
	maxInstances = 10_000
	maxAsked     = 1000
)

// instancesOf returns how many instances an element can have.
func instancesOf(n *bpmn.Node) int {
	if n.Kind == bpmn.UserTask && n.Loop.Kind == bpmn.Parallel {
		return maxAsked
	}
	return maxInstances
}

// items returns the items of a loop. A standard loop has none.
func (w *walker) items(n *bpmn.Node, env map[string]any) (json.RawMessage, error) {
	l, most := n.Loop, instancesOf(n)
	switch {
	case l.Kind == bpmn.StandardLoop:
		return json.RawMessage("[]"), nil
	case l.Collection != nil:
		v, err := l.Collection.Eval(w.ctx, env)
		if err != nil {
			return nil, err
		}
		list, ok := v.([]any)
		if !ok {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the collection of %s is not a list", title(n))
		}
		if len(list) > most {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the collection of %s has %d items; at most %d are allowed", title(n), len(list), most)
		}
		raw := encode(list)
		if len(raw) > maxVariable {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the collection of %s has %d bytes; at most %d are allowed", title(n), len(raw), maxVariable)
		}
		return raw, nil
	}
	v, err := l.Cardinality.Eval(w.ctx, env)
	if err != nil {
		return nil, err
	}
	count, ok := wholeNumber(v)
	if !ok || count < 0 || count > most {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the number of instances of %s is %s; it must be a whole number from 0 to %d", title(n), expression.Describe(v), most)
	}
	list := make([]int, count)
	for i := range list {
		list[i] = i
	}
	return encode(list), nil
}

// wholeNumber returns the int of a value of an expression, or of the text of a diagram.
func wholeNumber(v any) (int, bool) {
	if text, ok := v.(string); ok {
		v, _ = expression.ParseNumber(strings.TrimSpace(text))
	}
	n, ok := v.(int)
	return n, ok
}

// itemOf returns an item of a multi-instance element; false if it has none of its own.
func (w *walker) itemOf(body *view.WorkflowActivation, i int64) (any, bool) {
	if w.listOf != body.ID { // decoded once for all instances of a parallel one
		w.list, _ = decodeValue(body.Items).([]any) // it is an array, because it is in the log
		w.listOf = body.ID
	}
	if i >= int64(len(w.list)) {
		return nil, false
	}
	item := w.list[i]
	if i == int64(len(w.list))-1 {
		w.list, w.listOf = nil, ""
	}
	return item, true
}

// loop begins the next instances of a loop, or ends it.
func (w *walker) loop(n *bpmn.Node, body *view.WorkflowActivation) {
	enough, err := w.enough(n, body)
	if err != nil {
		w.failWith(body.ID, codeExpression, err)
		return
	}
	parallel := n.Loop.Kind == bpmn.Parallel
	switch {
	case enough:
		w.leaveLoop(n, body)
	case body.Begun > body.Done && !parallel:
	case n.Loop.Kind == bpmn.StandardLoop || body.Begun < *body.Count:
		i := body.Begun
		e := &entry{id: w.newID(), scope: body.ID, index: &i}
		e.item, e.hasItem = w.itemOf(body, i)
		w.begin(n, e)
		if parallel {
			w.look(body.ID) // for the next one
		}
	}
}

// enough reports whether a loop is complete.
func (w *walker) enough(n *bpmn.Node, body *view.WorkflowActivation) (bool, error) {
	l := n.Loop
	if l.Kind == bpmn.StandardLoop {
		switch {
		case body.Begun > body.Done:
			return false, nil
		case l.Maximum > 0 && body.Done >= int64(l.Maximum):
			return true, nil
		case l.Condition == nil || body.Done == 0 && !l.TestBefore:
			return false, nil
		}
		env := w.env(body.ID)
		env["loopCounter"] = body.Done
		more, err := l.Condition.Bool(w.ctx, env)
		return !more, err
	}
	if body.Done >= *body.Count {
		return true, nil
	}
	if l.Condition == nil || body.Done == 0 {
		return false, nil
	}
	return l.Condition.Bool(w.ctx, w.env(body.ID))
}

// leaveLoop ends a loop. Its instances that are still open end with it.
func (w *walker) leaveLoop(n *bpmn.Node, body *view.WorkflowActivation) {
	set := map[string]any{}
	if l := n.Loop; l.OutputCollection != "" {
		list := make([]any, 0, body.Done)
		total := *body.Count
		if l.Kind == bpmn.StandardLoop {
			total = body.Begun
		}
		for i := range total {
			raw, has := body.Outputs[i]
			if has {
				list = append(list, decodeValue(raw))
			} else if l.Condition == nil {
				list = append(list, nil)
			}
		}
		set[l.OutputCollection] = list
	}
	w.leave(n, body, set)
}

// output returns what one instance adds to the output collection of its loop.
func (w *walker) output(n *bpmn.Node, a *view.WorkflowActivation, set map[string]any) (json.RawMessage, error) {
	if a.Index == nil || n.Loop == nil || n.Loop.OutputElement == nil {
		return nil, nil
	}
	env := w.env(a.ID)
	for name, v := range set {
		env[name] = v
	}
	v, err := n.Loop.OutputElement.Eval(w.ctx, env)
	if err != nil {
		return nil, err
	}
	raw := encode(v)
	if len(raw) > maxVariable {
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the output of an instance of %s has %d bytes; at most %d are allowed", title(n), len(raw), maxVariable)
	}
	return raw, nil
}

func elementOf(n *bpmn.Node) payload.WorkflowElement {
	return payload.WorkflowElement{Element: n.ID, Name: n.Name}
}
