package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
	"github.com/tapedeck/tapedeck/view"
)

// encode encodes a value as JSON. Values come from JSON or from expressions, so they
// can be encoded.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null") // no value that can come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeValue keeps the digits of numbers: a float64 would make another identifier of
// 9007199254740993.
func decodeValue(raw json.RawMessage) any {
	v, _ := expression.Decode(raw) // it is JSON, because it is in the log
	return v
}

func decodeAll(raw map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(raw))
	for name, value := range raw {
		out[name] = decodeValue(value)
	}
	return out
}

// maxNesting leaves room for what is around a value in an event: an event that is nested too deep
// is refused, and its run would end without a word about the element.
const maxNesting = jsonobj.MaxNesting - 10

// checkNesting refuses a value that no event can have.
func checkNesting(what string, raw json.RawMessage) error {
	if jsonobj.Nesting(raw) > maxNesting {
		return tapedeck.Errorf(tapedeck.Invalid, "%.200s is nested more than %d deep", what, maxNesting)
	}
	return nil
}

// maxVariable is the largest variable, in bytes of its JSON.
const maxVariable = 1 << 20

// checkVariable refuses a value that no variable has.
func checkVariable(name string, raw json.RawMessage) error {
	if len(raw) > maxVariable {
		return tapedeck.Errorf(tapedeck.TooLarge, "the variable %.100q would have %d bytes; at most %d are allowed", name, len(raw), maxVariable)
	}
	return checkNesting("the variable "+strconv.Quote(name), raw)
}

// encodeAll encodes variables, and refuses those that are too large.
func encodeAll(values map[string]any) (tapedeck.Members, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out := make(tapedeck.Members, len(values))
	for name, v := range values {
		raw := encode(v)
		if err := checkVariable(name, raw); err != nil {
			return nil, err
		}
		out[name] = raw
	}
	return out, nil
}

// env returns the variables that an activation sees, with those of the loop around it.
func (w *walker) env(scope string) map[string]any {
	out := decodeAll(w.fold.Visible(scope))
	for a := w.fold.Open(scope); a != nil; a = w.fold.Open(a.Scope) {
		if a.Count == nil {
			continue
		}
		counts := loopCounts(a)
		for name, n := range counts {
			if _, has := out[name]; !has {
				out[name] = n
			}
		}
		break
	}
	return out
}

// loopCounts returns the counts of a loop, under the names of Camunda 7 and 8.
func loopCounts(body *view.WorkflowActivation) map[string]any {
	return map[string]any{
		"nrOfInstances": *body.Count, "nrOfCompletedInstances": body.Done, "nrOfActiveInstances": body.Begun - body.Done,
		"numberOfInstances": *body.Count, "numberOfCompletedInstances": body.Done, "numberOfActiveInstances": body.Begun - body.Done,
	}
}

// mapped evaluates mappings, in their order: a later one sees the earlier ones.
func (w *walker) mapped(list []bpmn.Mapping, env map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, m := range list {
		v, err := m.Source.Eval(w.ctx, env)
		if err != nil {
			return nil, err
		}
		out[m.Target], env[m.Target] = v, v
	}
	return out, nil
}

// fieldDefault returns the default of a field in the type of the field.
func fieldDefault(ctx context.Context, f *bpmn.Field, env map[string]any) (any, error) {
	v, err := f.Default.Eval(ctx, env)
	if err != nil || v == nil {
		return v, err
	}
	text, isText := v.(string)
	switch f.Type {
	case bpmn.BooleanField, bpmn.IntegerField, bpmn.NumberField:
		if !isText {
			return v, nil
		}
	default:
		if !isText {
			text = string(encode(v))
		}
	}
	return typed(f, "the default", text)
}

// checkDefault refuses a default that its field does not accept: it becomes the value of a
// variable, and no person sees it before.
func checkDefault(f *bpmn.Field, v any) error {
	text, isText := v.(string)
	if !isText {
		text = string(encode(v))
	}
	message := f.Wrong(text)
	switch {
	case v == nil && !f.Required:
		return nil
	case f.Required && (v == nil || strings.TrimSpace(text) == ""):
		message = "empty, and the field is required"
	case message == "":
		return nil
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the default of the field %s is %s", f.ID, message).WithHint("give variables.%s", f.ID)
}

// taskValue returns the text of a task in the type of the field of the start that asks for
// it.
func taskValue(start *bpmn.Node, name, text string) (any, error) {
	if start != nil && start.Form != nil {
		for i := range start.Form.Fields {
			if f := &start.Form.Fields[i]; f.ID == name {
				return typed(f, "the task", text)
			}
		}
	}
	return text, nil
}

// typed returns a text in the type of a field.
func typed(f *bpmn.Field, what, text string) (any, error) {
	switch f.Type {
	case bpmn.BooleanField:
		b, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s %.60q of the field %s is not true or false", what, text, f.ID)
		}
		return b, nil
	case bpmn.IntegerField, bpmn.NumberField:
		if f.Type == bpmn.IntegerField && !bpmn.IsInteger(text) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s %.60q of the field %s is not a whole number of at most %d digits", what, text, f.ID, decimal.Digits)
		}
		n, err := expression.ParseNumber(strings.TrimSpace(text))
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s %.60q of the field %s is not a number that a form takes", what, text, f.ID).WithHint("%s", err).Because(err)
		}
		return n, nil
	}
	return text, nil
}
