package workflow

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxState is how many bytes of JSON a process keeps at most: its variables, those of its
// open elements, and the items and results of loops. A run has them in memory, and so has
// each answer with its state.
const maxState = 16 << 20

// fits returns an error if a process would keep too much with some more bytes. The size
// that the walker knows is too high, because what is replaced and what ends stays in it;
// the state is added up only if that seems too much.
func (w *walker) fits(more int) error {
	if w.size += more; w.size <= w.r.maxState {
		return nil
	}
	now := stateSize(w.fold)
	if w.size = now + more; w.size <= w.r.maxState {
		return nil
	}
	w.size = now
	return w.r.tooLarge(now + more)
}

func (r *Runner) tooLarge(n int) error {
	return tapedeck.Errorf(tapedeck.TooLarge, "the variables of the workflow would have %d bytes together; at most %d are allowed", n, r.maxState)
}

// stateSize adds up what a process keeps.
func stateSize(f *view.WorkflowFold) int {
	n := sizeOf(f.Head().Variables)
	for i := range f.Head().Messages {
		n += sizeOf(f.Head().Messages[i].Variables)
	}
	for a := range f.EachOpen() {
		n += sizeOf(a.Variables) + len(a.Items)
		for _, out := range a.Outputs {
			n += len(out)
		}
		if a.Trigger != nil {
			n += sizeOf(a.Trigger.Variables)
		}
		if a.Compensating != nil {
			n += sizeOf(a.Compensating.Variables)
		}
		n += keptSize(a.Compensable)
	}
	return n + keptSize(f.Compensable(""))
}

// keptSize adds up the variables of what can be compensated.
func keptSize(list []*view.WorkflowCompensable) (n int) {
	for _, c := range list {
		n += sizeOf(c.Variables) + keptSize(c.Inside)
	}
	return n
}

// sizeOf is about the size of variables in JSON.
func sizeOf(variables map[string]json.RawMessage) (n int) {
	for name, value := range variables {
		n += len(name) + len(value) + 4
	}
	return n
}
