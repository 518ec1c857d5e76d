package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
)

// fieldTypes are the types of the fields of a form.
var fieldTypes = []string{"string", "text", "integer", "number", "boolean", "date", "enum"}

// checkForm reports whether a form can be filled in.
func checkForm(id string, form []tapedeck.FormField) error {
	seen := map[string]bool{}
	for i := range form {
		f := &form[i]
		switch {
		case f.ID == "" || seen[f.ID]:
			return tapedeck.Errorf(tapedeck.Invalid, "the fields of the permission %s need ids of their own", id)
		case !slices.Contains(fieldTypes, f.Type):
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q of the permission %s has the type %q", f.ID, id, f.Type).
				WithHint("the types are %s", strings.Join(fieldTypes, ", "))
		case f.Type == "enum" && len(f.Options) == 0:
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q of the permission %s has no options", f.ID, id)
		}
		seen[f.ID] = true
	}
	return nil
}

// checkInput reports why an input does not fit the form of a permission. An answer
// that rejects needs no input.
func checkInput(q *tapedeck.Question, option string, input tapedeck.Members) error {
	if len(q.Form) == 0 {
		if len(input) > 0 {
			return tapedeck.Errorf(tapedeck.Invalid, "the permission %s has no form, so its answer has no input", q.ID).WithHint("leave input out")
		}
		return nil
	}
	if n := membersSize(input); n > maxMessageSize {
		return tapedeck.Errorf(tapedeck.TooLarge, "the answer has %d bytes; at most %d are allowed", n, maxMessageSize)
	}
	var ids []string
	for i := range q.Form {
		if !q.Form[i].ReadOnly {
			ids = append(ids, q.Form[i].ID)
		}
	}
	for name := range input {
		if !slices.Contains(ids, name) {
			return tapedeck.Errorf(tapedeck.Invalid, "the form of the permission %s has no field %q that can be filled in", q.ID, name).
				WithHint("the fields are %s", strings.Join(ids, ", "))
		}
	}
	rejects := slices.ContainsFunc(q.Options, func(o tapedeck.PermissionOption) bool {
		return o.ID == option && strings.HasPrefix(o.Kind, "reject")
	})
	for i := range q.Form {
		f := &q.Form[i]
		value, given := input[f.ID]
		given = given && string(value) != "null"
		switch {
		case given:
			if err := checkField(f, value); err != nil {
				return err
			}
		case f.ReadOnly || rejects:
		case f.Default != nil && string(f.Default) != "null": // it is the answer then
			if err := checkField(f, f.Default); err != nil {
				return tapedeck.Errorf(tapedeck.Invalid, "%w; its default is %.100s", err, f.Default).WithHint("give input.%s", f.ID)
			}
		case f.Required:
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q of the permission %s is required", f.ID, q.ID).WithHint("give input.%s", f.ID)
		}
	}
	return nil
}

// checkField reports why a value does not fit a field.
func checkField(f *tapedeck.FormField, raw json.RawMessage) error {
	wrong := func(want string) error {
		return tapedeck.Errorf(tapedeck.Invalid, "the field %q must be %s", f.ID, want)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw)) // json.Unmarshal would change long numbers
	d.UseNumber()
	if !json.Valid(raw) || d.Decode(&v) != nil {
		return wrong("JSON")
	}
	switch f.Type {
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case "integer", "number":
		text, ok := v.(json.Number)
		if !ok {
			return wrong("a number")
		}
		n, err := decimal.Parse(text.String())
		if err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q cannot have the number %.40s: %s", f.ID, text, decimal.Bounds)
		}
		if f.Type == "integer" && !n.Whole() {
			return wrong("a whole number")
		}
		if f.Type == "integer" && !n.Integer() {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q cannot have the number %.40s: a whole number has at most %d digits", f.ID, text, decimal.Digits)
		}
		return checkRange(f, n)
	default:
		s, ok := v.(string)
		if !ok {
			return wrong("a text")
		}
		return checkText(f, s)
	}
	return nil
}

// checkRange compares with the decimals that the limits are written as.
func checkRange(f *tapedeck.FormField, n decimal.Decimal) error {
	if f.Min != nil {
		if least, err := decimal.FromFloat(*f.Min); err == nil && n.Cmp(least) < 0 {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q must be at least %s", f.ID, least)
		}
	}
	if f.Max != nil {
		if most, err := decimal.FromFloat(*f.Max); err == nil && n.Cmp(most) > 0 {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q must be at most %s", f.ID, most)
		}
	}
	return nil
}

func checkText(f *tapedeck.FormField, s string) error {
	n := int64(utf8.RuneCountInString(s))
	switch {
	case f.Required && strings.TrimSpace(s) == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the field %q is required, and its text is empty", f.ID)
	case f.MinLength != nil && n < *f.MinLength:
		return tapedeck.Errorf(tapedeck.Invalid, "the field %q must have at least %d characters", f.ID, *f.MinLength)
	case f.MaxLength != nil && n > *f.MaxLength:
		return tapedeck.Errorf(tapedeck.Invalid, "the field %q can have at most %d characters", f.ID, *f.MaxLength)
	case f.Type == "date" && s != "":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q must be a date such as 2026-12-24, not %.40q", f.ID, s)
		}
	case f.Type == "enum":
		var values []string
		for _, o := range f.Options {
			values = append(values, o.Value)
		}
		if !slices.Contains(values, s) {
			return tapedeck.Errorf(tapedeck.Invalid, "the field %q cannot be %.100q", f.ID, s).WithHint("choose one of %s", strings.Join(values, ", "))
		}
	}
	return nil
}
