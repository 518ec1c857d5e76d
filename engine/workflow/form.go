package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// fieldsOf returns the form of the start of a process, nil if it has none.
func fieldsOf(p *bpmn.Process) []tapedeck.FormField {
	if p.Start == nil || p.Start.Form == nil {
		return nil
	}
	var out []tapedeck.FormField
	for i := range p.Start.Form.Fields {
		out = append(out, fieldOf(&p.Start.Form.Fields[i]))
	}
	return out
}

func fieldOf(f *bpmn.Field) tapedeck.FormField {
	out := tapedeck.FormField{
		ID: f.ID, Label: f.Label, Type: string(f.Type), Required: f.Required, ReadOnly: f.ReadOnly,
		Min: f.Min, Max: f.Max, MinLength: length(f.MinLength), MaxLength: length(f.MaxLength),
	}
	for _, o := range f.Options {
		out.Options = append(out.Options, tapedeck.FormOption{Value: o.Value, Label: o.Label})
	}
	if f.Default == nil {
		return out
	}
	// At the start there are no variables, so a default that needs some is none.
	if v, err := f.Default.Eval(context.Background(), map[string]any{}); err == nil {
		out.Default = typed(&out, v)
	}
	return out
}

func length(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// typed returns a default as JSON of the type of its field, nil if it does not fit. A
// diagram has numbers and booleans as text.
func typed(f *tapedeck.FormField, v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	if text, ok := v.(string); ok && engine.CheckField(f, b) != nil && json.Valid([]byte(text)) {
		b = []byte(text)
	}
	if engine.CheckField(f, b) != nil {
		return nil
	}
	return b
}

// startVariables returns the first variables of a run: those of the request, and the
// defaults of the start's form. The error has everything that does not fit the form.
func startVariables(p *bpmn.Process, given map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	out := maps.Clone(given)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	var bad []tapedeck.Problem
	for i, f := range fieldsOf(p) {
		place := tapedeck.Problem{Line: p.Start.Form.Fields[i].Line, Element: p.Start.ID, Name: p.Start.Name}
		value, ok := out[f.ID]
		switch {
		case ok && string(value) != "null" && !f.ReadOnly:
			if err := engine.CheckField(&f, value); err != nil {
				var e *tapedeck.Error
				errors.As(err, &e)
				place.Message, place.Hint = e.Message, e.Hint
				bad = append(bad, place)
			}
		case ok && f.ReadOnly:
			place.Message = "the variable " + quote(f.ID) + " cannot be set, because its field can only be read"
			bad = append(bad, place)
		case f.Default != nil:
			out[f.ID] = f.Default
		case f.Required:
			place.Message = "the variable " + quote(f.ID) + " is missing"
			place.Hint = "give it in variables; it is a " + f.Type
			bad = append(bad, place)
		}
	}
	if bad != nil {
		return nil, placesError(bad)
	}
	return out, nil
}
