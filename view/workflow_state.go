package view

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
)

// The methods in this file are for a runner that walks the process. What they return
// is the state of the fold itself: it must not be changed, and the next Apply may change
// it.

// Head returns the workflow without its lists, and with the variables of the process.
func (f *WorkflowFold) Head() *Workflow { return &f.head }

// DropXML forgets the definition, so that a process that waits for long needs less
// memory.
func (f *WorkflowFold) DropXML() { f.head.XML = "" }

// ForgetEnded makes the fold keep no activations that have ended: a runner needs only
// the open ones.
func (f *WorkflowFold) ForgetEnded() { f.forgets, f.ended = true, nil }

// Open returns an open activation, nil if there is none with this id.
func (f *WorkflowFold) Open(id string) *WorkflowActivation { return f.open[id] }

// AllOpen returns the open activations in the order of their ids.
func (f *WorkflowFold) AllOpen() []*WorkflowActivation {
	return slices.SortedFunc(maps.Values(f.open), func(a, b *WorkflowActivation) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
}

// EachOpen yields the open activations in no order.
func (f *WorkflowFold) EachOpen() iter.Seq[*WorkflowActivation] { return maps.Values(f.open) }

// Element returns the sum of the activations of an element; zero if it was never
// entered.
func (f *WorkflowFold) Element(id string) WorkflowElement {
	if el := f.elements[id]; el != nil {
		return *el
	}
	return WorkflowElement{Element: id}
}

// Inside returns how many activations and tokens are directly in the process.
func (f *WorkflowFold) Inside() int64 { return f.inside }

// Halted reports whether a terminate event ended the process.
func (f *WorkflowFold) Halted() bool { return f.halted }

// Fired reports whether what an event sub-process of the process waited for has
// happened.
func (f *WorkflowFold) Fired(element string) bool { return f.fired[element] }

// LastID returns the highest number that is the id of an activation, 0 for none.
func (f *WorkflowFold) LastID() int64 { return f.lastID }

// Visible returns the variables that an activation sees, or the process for "": those
// of the nearest scope count, and no call activity sees those outside of it.
func (f *WorkflowFold) Visible(scope string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for a := f.open[scope]; a != nil; a = f.open[a.Scope] {
		for name, value := range a.Variables {
			if _, has := out[name]; !has {
				out[name] = value
			}
		}
		if a.Type == "callActivity" && a.Count == nil {
			return out
		}
	}
	for name, value := range f.head.Variables {
		if _, has := out[name]; !has {
			out[name] = value
		}
	}
	return out
}
