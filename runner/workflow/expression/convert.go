package expression

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

func isString(v any) bool { _, ok := v.(string); return ok }

// normalize returns a value of JSON with the numbers of evaluations.
func normalize(v any) any {
	switch v := v.(type) {
	case json.Number:
		return numberOf(v.String())
	case float64:
		return floatNumber(v)
	case float32:
		return numberOf(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case int64:
		return numberOf(strconv.FormatInt(v, 10))
	case int32:
		return int(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalize(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = normalize(v[k])
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	}
	return v
}

// export returns a result as JSON has it. What has no form in JSON is an error.
func export(v any) (any, error) {
	b, size := &budget{}, MaxSize
	if !b.measure(v, &size, 0) {
		return nil, b.sizeError()
	}
	return exported(v)
}

func exported(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int:
		return v, nil
	case decimalNumber:
		return json.Number(v.d.String()), nil
	case farNumber:
		if !json.Valid([]byte(v.text)) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the result is no value of JSON")
		}
		return json.Number(v.text), nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = exported(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = exported(v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return reflected(v)
}

// Describe names a value in a sentence: null, 2.5, the text "two", a list.
func Describe(v any) string { return describe(normalize(v)) }

// describe names the type of a value.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool, int, decimalNumber:
		return text(v)
	case farNumber, json.Number:
		return "the number " + shorten(text(v), 50)
	case string:
		return "the text " + quote(v)
	case []any, []int, []string:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a value of another type"
}

// list returns a list of any type that expr-lang makes.
func list(v any) ([]any, bool) {
	if l, ok := v.([]any); ok {
		return l, true
	}
	r := reflect.ValueOf(v)
	if v == nil || r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return nil, false
	}
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Index(i).Interface()
	}
	return out, true
}

// reflected exports values of types that only expr-lang makes, such as []int.
func reflected(v any) (any, error) {
	if l, ok := list(v); ok {
		return exported(l)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return int(r.Int()), nil
	case r.Kind() == reflect.Map:
		out := make(map[string]any, r.Len())
		for _, k := range r.MapKeys() {
			e, err := exported(r.MapIndex(k).Interface())
			if err != nil {
				return nil, err
			}
			out[keyText(k.Interface())] = e
		}
		return out, nil
	}
	return nil, tapedeck.Errorf(tapedeck.Invalid, "the result is no value of JSON")
}

// text returns a value as people read it: texts and numbers as they are, null as
// nothing, lists and objects as JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case decimalNumber:
		return v.d.Text()
	case farNumber:
		return v.text
	case json.Number:
		return text(numberOf(v.String()))
	case bool:
		return strconv.FormatBool(v)
	}
	out, err := export(v)
	if err != nil {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(out) != nil || !utf8.ValidString(b.String()) {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
