package bpmn

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

const (
	maxFields = 200
	maxLength = 1 << 53 // the largest limit of a text that every client reads exactly
)

func (n *Node) addField(f Field) {
	if n.Form == nil {
		n.Form = &Form{Line: f.Line}
	}
	n.Form.Fields = append(n.Form.Fields, f)
}

// field checks a field and adds it to the form of its element.
func (r *reader) field(n *Node, f Field) {
	where := at{f.Line, n.ID, n.Name}
	r.variable(where, "the field", f.ID)
	if f.Label == "" {
		f.Label = f.ID
	}
	if n.Form != nil && slices.ContainsFunc(n.Form.Fields, func(g Field) bool { return g.ID == f.ID }) {
		r.refuse(where, "", "the form has two fields %q", f.ID)
		return
	}
	if n.Form != nil && len(n.Form.Fields) >= maxFields {
		r.refuse(where, "", "the form has more than %d fields", maxFields)
		return
	}
	if f.Type == EnumField && len(f.Options) == 0 {
		r.refuse(where, "", "the field %s has no options to choose from", f.ID)
	}
	if f.Min != nil && f.Max != nil && *f.Min > *f.Max || f.MinLength != nil && f.MaxLength != nil && *f.MinLength > *f.MaxLength {
		r.refuse(where, "", "the smallest value of the field %s is above the largest", f.ID)
	}
	if text, ok := constant(f.Default); ok {
		if message := f.Wrong(text); message != "" {
			r.refuse(where, "", "the default of the field %s is %s", f.ID, message)
		}
	}
	n.addField(f)
}

func constant(v *expression.Value) (string, bool) {
	if v == nil {
		return "", false
	}
	return v.Constant()
}

// Wrong says what is wrong with the default of a field, which is written as text; "" if nothing
// is.
func (f *Field) Wrong(text string) string {
	switch f.Type {
	case IntegerField, NumberField:
		return f.wrongNumber(text)
	case BooleanField:
		if text != "true" && text != "false" {
			return fmt.Sprintf("%.40q, not true or false", text)
		}
	case EnumField:
		if !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == text }) {
			return fmt.Sprintf("%.40q, which is none of its options", text)
		}
	case DateField:
		if _, err := parseDate(text); err != nil {
			return fmt.Sprintf("%.40q, not a date such as 2026-12-24", text)
		}
	default:
		n := utf8.RuneCountInString(text)
		if f.MinLength != nil && n < *f.MinLength {
			return fmt.Sprintf("%.40q, which has fewer than %d characters", text, *f.MinLength)
		}
		if f.MaxLength != nil && n > *f.MaxLength {
			return fmt.Sprintf("%.40q, which has more than %d characters", text, *f.MaxLength)
		}
	}
	return ""
}

func (f *Field) wrongNumber(text string) string {
	d, err := decimal.Parse(text)
	switch {
	case f.Type == IntegerField && (strings.Trim(text, "+-0123456789") != "" || errors.Is(err, decimal.ErrSyntax)):
		return fmt.Sprintf("%.40q, not a whole number", text)
	case errors.Is(err, decimal.ErrSyntax):
		return fmt.Sprintf("%.40q, not a number", text)
	case err != nil:
		return fmt.Sprintf("%.40q: %s", text, decimal.Bounds)
	case f.Type == IntegerField && !d.Integer():
		return fmt.Sprintf("%.40q: a whole number has at most %d digits", text, decimal.Digits)
	}
	if f.Min != nil {
		if least, err := decimal.FromFloat(*f.Min); err == nil && d.Cmp(least) < 0 {
			return fmt.Sprintf("%.40q, which is below its smallest value %s", text, least)
		}
	}
	if f.Max != nil {
		if most, err := decimal.FromFloat(*f.Max); err == nil && d.Cmp(most) > 0 {
			return fmt.Sprintf("%.40q, which is above its largest value %s", text, most)
		}
	}
	return ""
}

// IsInteger reports whether a text is a number that a field of the type integer takes.
func IsInteger(text string) bool {
	d, err := decimal.Parse(strings.TrimSpace(text))
	return err == nil && d.Integer()
}

// fieldTypes are the types of fields in all the forms that are read.
var fieldTypes = map[string]FieldType{
	"": StringField, "string": StringField, "text": TextField, "long": IntegerField, "integer": IntegerField, "int": IntegerField,
	"double": NumberField, "number": NumberField, "boolean": BooleanField, "date": DateField, "enum": EnumField,
}

// bounds reads limits as they stand in attributes. One that is there and empty is refused, as any
// other that is no number.
func (r *reader) bounds(where at, f *Field, limits map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		text, lower := limits[name], strings.ToLower(name)
		if number := f.Type == IntegerField || f.Type == NumberField; number != (lower == "min" || lower == "max") {
			r.warn(where, "", "%s of the field %s is not checked: its type is %s", name, f.ID, f.Type)
		}
		d, err := decimal.Parse(text)
		if err != nil {
			r.refuse(where, "", "%s of the field %s is %.40q, not a number", name, f.ID, text)
			continue
		}
		// A limit is a float64 in the log and in the HTTP API. One that is not exactly what the
		// diagram says would let another number through.
		v, _ := strconv.ParseFloat(text, 64)
		if kept, err := decimal.FromFloat(v); err != nil || kept != d {
			r.refuse(where, "a limit of up to 15 digits is kept exactly", "%s of the field %s is %.40q, which is too long for a limit", name, f.ID, text)
			continue
		}
		length := int(v)
		if n, whole := d.Int(); lower != "min" && lower != "max" && (!whole || n < 0 || n > maxLength) {
			r.refuse(where, "", "%s of the field %s is %.40q, not a whole number from 0 to %d", name, f.ID, text, maxLength)
			continue
		}
		switch lower {
		case "min":
			f.Min = &v
		case "max":
			f.Max = &v
		case "minlength":
			f.MinLength = &length
		case "maxlength":
			f.MaxLength = &length
		}
	}
}

var ownField = []string{"id", "label", "type", "required", "readonly", "default", "min", "max", "minLength", "maxLength"}

// ownForm reads tapedeck:form with its fields.
func (r *reader) ownForm(x *element, n *Node) {
	r.ownNames(x, at{x.line, n.ID, n.Name}, nil, []string{"field"})
	for _, c := range x.children {
		where := at{c.line, n.ID, n.Name}
		r.ownNames(c, where, ownField, []string{"option"})
		name, has := c.lookup("", "type")
		t, ok := fieldTypes[name]
		if !ok || has && name == "" {
			r.refuse(where, "the types are string, text, integer, number, boolean, date and enum", "%q is no type of a field", name)
		}
		f := Field{ID: c.attr("id"), Label: c.attr("label"), Type: t, Required: r.flag(c, where, "required", false), ReadOnly: r.flag(c, where, "readonly", false), Line: c.line}
		for _, o := range c.children {
			r.ownNames(o, where, []string{"value", "label"}, nil)
			if _, has := o.lookup("", "value"); !has {
				r.refuse(where, "", "an option of the field %s has no value", f.ID)
			}
			f.Options = append(f.Options, option(o.attr("value"), o.attr("label")))
		}
		if text, ok := c.lookup("", "default"); ok {
			f.Default = r.value(where, text)
		}
		limits := map[string]string{}
		for _, name := range []string{"min", "max", "minLength", "maxLength"} {
			if text, has := c.lookup("", name); has {
				limits[name] = text
			}
		}
		r.bounds(where, &f, limits)
		r.field(n, f)
	}
}

func option(value, label string) Option {
	if label == "" {
		label = value
	}
	return Option{Value: value, Label: label}
}

// camundaForm reads a generated task form of Camunda 7.
func (r *reader) camundaForm(x *element, n *Node) {
	for _, c := range x.children {
		where := at{c.line, n.ID, n.Name}
		if c.Local != "formField" {
			r.warn(where, "", "%s is not read", c.Local)
			continue
		}
		t, ok := fieldTypes[c.attr("type")]
		if !ok {
			r.refuse(where, "the types are string, long, boolean, date and enum", "the field %s has the type %q, which is not supported", c.attr("id"), c.attr("type"))
		}
		f := Field{ID: c.attr("id"), Label: c.attr("label"), Type: t, Line: c.line}
		limits := map[string]string{}
		for _, part := range c.children {
			switch part.Local {
			case "value":
				f.Options = append(f.Options, option(part.attr("id"), part.attr("name")))
			case "validation":
				for _, k := range part.children {
					switch name := k.attr("name"); name {
					case "required":
						f.Required = k.attr("config") != "false"
					case "readonly":
						f.ReadOnly = k.attr("config") != "false"
					case "min", "max", "minlength", "maxlength":
						limits[name] = k.attr("config")
					default:
						r.warn(where, "", "the constraint %q of the field %s is not checked", name, f.ID)
					}
				}
			}
		}
		if text := c.attr("defaultValue"); text != "" {
			f.Default = r.compiled(where, expression.ParseJUEL, text)
		}
		r.bounds(where, &f, limits)
		r.field(n, f)
	}
}

// formProperty reads a field of the older forms of Activiti and Flowable.
func (r *reader) formProperty(x *element, n *Node) {
	where := at{x.line, n.ID, n.Name}
	t, ok := fieldTypes[x.attr("type")]
	if !ok {
		r.refuse(where, "", "the field %s has the type %q, which is not supported", x.attr("id"), x.attr("type"))
	}
	f := Field{ID: x.attr("id"), Label: x.attr("name"), Type: t, Required: r.flag(x, where, "required", false), ReadOnly: !r.flag(x, where, "writable", true), Line: x.line}
	for _, c := range x.children {
		if c.Local == "value" {
			f.Options = append(f.Options, option(c.attr("id"), c.attr("name")))
		}
	}
	text := x.attr("default")
	if text == "" {
		text = x.attr("expression")
	}
	if text != "" {
		f.Default = r.compiled(where, expression.ParseJUEL, text)
	}
	r.field(n, f)
}

// A formJS is a form of Camunda 8, as its form editor writes it.
type formJS struct {
	Components []formPart `json:"components"`
}

type formPart struct {
	Type         string          `json:"type"`
	Key          string          `json:"key"`
	Label        string          `json:"label"`
	DateLabel    string          `json:"dateLabel"`
	Subtype      string          `json:"subtype"`
	DefaultValue json.RawMessage `json:"defaultValue"`
	Decimals     *int            `json:"decimalDigits"`
	Disabled     bool            `json:"disabled"`
	Readonly     json.RawMessage `json:"readonly"` // true, or an expression
	Values       []struct {
		Value json.RawMessage `json:"value"`
		Label string          `json:"label"`
	} `json:"values"`
	Validate struct {
		Required  bool            `json:"required"`
		Min       json.RawMessage `json:"min"` // a number, or its text
		Max       json.RawMessage `json:"max"`
		MinLength json.RawMessage `json:"minLength"`
		MaxLength json.RawMessage `json:"maxLength"`
	} `json:"validate"`
	Components []formPart `json:"components"`
}

const embeddedForm = "camunda-forms:bpmn:"

// zeebeForm reads a form of Camunda 8 that is in the file.
func (r *reader) zeebeForm(x *element, n *Node) {
	where := at{x.line, n.ID, n.Name}
	key := x.attr("formKey")
	id, embedded := strings.CutPrefix(key, embeddedForm)
	source, ok := r.forms[id]
	if !embedded || !ok {
		for _, name := range []string{"formId", "externalReference"} {
			if key == "" {
				key = x.attr(name)
			}
		}
		r.warn(where, "embed the form, or draw it as tapedeck:form", "the form %q is not read", key)
		return
	}
	var form formJS
	if err := json.Unmarshal([]byte(source), &form); err != nil {
		r.refuse(where, "", "the form %s is not a form of Camunda 8: %v", id, err)
		return
	}
	r.formParts(form.Components, n, where, 0)
}

// shown are parts of a form without a value.
var shown = words(`text html separator spacer image button`)

func (r *reader) formParts(parts []formPart, n *Node, where at, level int) {
	for i := range parts {
		c := &parts[i]
		f := Field{ID: c.Key, Label: c.Label, Required: c.Validate.Required, ReadOnly: c.Disabled || string(c.Readonly) == "true", Line: where.line}
		switch c.Type {
		case "textfield":
			f.Type = StringField
		case "textarea":
			f.Type = TextField
		case "number":
			f.Type = NumberField
			if c.Decimals != nil && *c.Decimals == 0 {
				f.Type = IntegerField
			}
		case "checkbox":
			f.Type = BooleanField
		case "select", "radio":
			f.Type = EnumField
			for _, v := range c.Values {
				f.Options = append(f.Options, option(unquote(v.Value), v.Label))
			}
		case "datetime":
			f.Type, f.Label = DateField, c.DateLabel
		case "group":
			if level < 10 {
				r.formParts(c.Components, n, where, level+1)
			}
			continue
		default:
			if !shown[c.Type] {
				r.warn(where, "", "the part %q (%s) of the form is not shown", c.Key, c.Type)
			}
			continue
		}
		if c.Type == "datetime" && c.Subtype != "" && c.Subtype != "date" || c.Type == "select" && len(f.Options) == 0 {
			r.warn(where, "", "the field %q is a plain text here: only dates without a time, and options that stand in the form, are supported", c.Key)
			f.Type = StringField
		}
		if len(c.DefaultValue) > 0 && string(c.DefaultValue) != "null" {
			f.Default = r.value(where, unquote(c.DefaultValue))
		}
		v := &c.Validate
		limits := map[string]string{}
		for name, raw := range map[string]json.RawMessage{"min": v.Min, "max": v.Max, "minLength": v.MinLength, "maxLength": v.MaxLength} {
			if len(raw) > 0 && string(raw) != "null" {
				limits[name] = unquote(raw)
			}
		}
		r.bounds(where, &f, limits)
		r.field(n, f)
	}
}

// unquote returns a value of JSON as text.
func unquote(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
