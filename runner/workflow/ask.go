package workflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// optionSubmit is the answer to the question of a user task.
const optionSubmit = "submit"

// ask asks people, or takes their answer. The question has the same id after a restart,
// so it is asked once; a new run asks again, because questions end with their run.
func (w *walker) ask(n *bpmn.Node, a *view.WorkflowActivation) {
	id := "per_" + strings.TrimPrefix(w.in.ID, "inv_") + "." + a.ID
	for i := range a.Waits { // also the answer to the question of an earlier run, which did not take it
		if wait := &a.Waits[i]; wait.Element == n.ID && wait.Answer != nil {
			w.answered(n, a, wait.Answer)
			return
		}
	}
	i := slices.IndexFunc(a.Waits, func(wait view.WorkflowWait) bool { return wait.Element == n.ID && wait.Permission == id })
	q, err := w.question(n, a, id)
	if err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	if w.in.Inbox == nil {
		w.failWith(a.ID, codeAgent, tapedeck.Errorf(tapedeck.Unavailable, "this host cannot ask people"))
		return
	}
	if i < 0 {
		w.emit(payload.WorkflowWaiting{WorkflowElement: elementOf(n), Activation: a.ID, For: "user", Permission: id})
	}
	if !w.asked[id] {
		w.asked[id] = true
		w.emit(payload.PermissionRequested{Question: q})
	}
}

// question returns the question of a user task.
func (w *walker) question(n *bpmn.Node, a *view.WorkflowActivation, id string) (tapedeck.Question, error) {
	q := tapedeck.Question{
		ID: id, Message: n.Name, Options: []tapedeck.PermissionOption{{ID: optionSubmit, Name: "Submit", Kind: "allow_once"}},
	}
	if q.Message == "" {
		q.Message = n.ID
	}
	if n.Documentation != "" {
		q.Message += "\n" + n.Documentation
	}
	if n.Form == nil {
		return q, nil
	}
	env := w.env(a.ID)
	for i := range n.Form.Fields {
		f := &n.Form.Fields[i]
		field := tapedeck.FormField{
			ID: f.ID, Label: f.Label, Type: string(f.Type), Required: f.Required, ReadOnly: f.ReadOnly, Min: f.Min, Max: f.Max,
			MinLength: wide(f.MinLength), MaxLength: wide(f.MaxLength),
		}
		for _, o := range f.Options {
			field.Options = append(field.Options, tapedeck.FormOption{Value: o.Value, Label: o.Label})
		}
		if f.Default != nil {
			v, err := fieldDefault(w.ctx, f, env)
			if err != nil {
				return q, err
			}
			field.Default = encode(v)
		} else if v, has := env[f.ID]; has {
			field.Default = encode(v)
		}
		q.Form = append(q.Form, field)
	}
	return q, nil
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// answered ends a user task with the input of its answer. A field that was left out keeps
// its default.
func (w *walker) answered(n *bpmn.Node, a *view.WorkflowActivation, c *tapedeck.Choice) {
	if c.Option == "" {
		w.fail(a.ID, codeCancelled, "the question of "+title(n)+" was cancelled")
		return
	}
	q, err := w.question(n, a, c.ID)
	if err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	set := map[string]any{}
	for i := range q.Form {
		f := &q.Form[i]
		if raw, given := c.Input[f.ID]; given && !f.ReadOnly {
			set[f.ID] = decodeValue(raw)
		} else if f.Default != nil && !f.ReadOnly {
			set[f.ID] = decodeValue(f.Default)
		}
	}
	w.leave(n, a, set)
}

// withdraw cancels the questions whose activations have ended.
func (w *walker) withdraw() {
	if len(w.asked) == 0 {
		return
	}
	wanted := map[string]bool{}
	for _, a := range w.fold.AllOpen() {
		for i := range a.Waits {
			wanted[a.Waits[i].Permission] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.asked)) {
		if !wanted[id] && !w.stopped() {
			delete(w.asked, id)
			w.emit(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: id, Outcome: "cancelled"}})
		}
	}
}
