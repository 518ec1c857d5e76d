package view

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// This file keeps what is in a scope: tokens, activations and variables.

// put puts a token somewhere.
func (f *WorkflowFold) put(t WorkflowToken) {
	if t.Flow == "" && t.Element == "" {
		return
	}
	f.head.Tokens = append(f.head.Tokens, t)
	f.addInside(t.Scope, 1)
}

// takeToken removes a token that is on a flow or on its way to an element.
func (f *WorkflowFold) takeToken(scope, flow, element string) *WorkflowTrigger {
	i := slices.IndexFunc(f.head.Tokens, func(t WorkflowToken) bool { return t.Scope == scope && t.Flow == flow && t.Element == element })
	if i < 0 {
		return nil
	}
	trigger := f.head.Tokens[i].Trigger
	f.head.Tokens = slices.Delete(f.head.Tokens, i, i+1)
	f.addInside(scope, -1)
	return trigger
}

func (f *WorkflowFold) addInside(scope string, n int64) {
	if scope == "" {
		f.inside += n
	} else if a := f.open[scope]; a != nil {
		a.Inside += n
	}
}

// empty ends all that is in a scope, inner activations first.
func (f *WorkflowFold) empty(scope string, e *tapedeck.Event) {
	inside := f.inside
	if a := f.open[scope]; a != nil {
		inside = a.Inside
	} else if scope != "" {
		return
	}
	if inside == 0 {
		return
	}
	n := len(f.head.Tokens)
	f.head.Tokens = slices.DeleteFunc(f.head.Tokens, func(t WorkflowToken) bool { return t.Scope == scope })
	f.addInside(scope, int64(len(f.head.Tokens)-n))
	var in []*WorkflowActivation
	for _, a := range f.open {
		if a.Scope == scope {
			in = append(in, a)
		}
	}
	slices.SortFunc(in, func(a, b *WorkflowActivation) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.ID, b.ID))
	})
	for _, a := range in {
		f.end(a, ActivationInterrupted, e)
	}
}

func (f *WorkflowFold) variables(e *tapedeck.Event) {
	var d payload.WorkflowVariables
	if decode(e, &d) {
		f.set(d.Scope, d.Variables)
	}
}

// set sets variables. Each goes to the nearest scope that has it, up to the next call
// activity; one that no scope has goes to that call or to the process.
func (f *WorkflowFold) set(scope string, values map[string]json.RawMessage) {
	for name, value := range values {
		in := f.place(scope, name)
		if *in == nil {
			*in = map[string]json.RawMessage{}
		}
		(*in)[name] = value
	}
}

// place returns the variables of the scope in which a variable is set.
func (f *WorkflowFold) place(scope, name string) *map[string]json.RawMessage {
	for a := f.open[scope]; a != nil; a = f.open[a.Scope] {
		if _, has := a.Variables[name]; has || a.Type == "callActivity" && a.Items == nil {
			return &a.Variables
		}
	}
	return &f.head.Variables
}
