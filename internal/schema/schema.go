// Package schema compares JSON values with a JSON Schema that others wrote: it takes a bounded
// time and stops nothing, whatever the schema says.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A Schema is a schema that a value has to fit. The library that compares follows every
// reference, in a recursion without an end if a part refers to itself, and as often as the
// schema says: forty parts that each refer to the next one twice are followed 2^40 times. A
// short pattern can repeat its parts millions of times. So such parts are refused, and the
// steps of a comparison are counted before it begins.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	parts    map[string]*jsonschema.Schema // by their JSON Pointers, such as #/$defs/a
	patterns map[string]int                // the size of each pattern
	texts    map[*jsonschema.Schema]int    // the bytes of the values in a part, which its errors repeat
}

// These bound a comparison.
const (
	maxDepth    = 2_000  // of parts that refer to each other, and of the values in a value
	maxNest     = 200    // of the parts in a part: the library reads each as often as it is deep
	maxPatterns = 20_000 // the size of all patterns
)

// versions are the values of $schema that the library knows.
var versions = []string{"", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"}

// ErrSteps is the error of a comparison that would take too many steps.
var ErrSteps error = tapedeck.Errorf(tapedeck.Invalid, "it takes too many steps to compare with its schema").WithHint("make the schema or the answer smaller")

// Read reads a schema. The error says why it cannot be used, and hint what to write.
func Read(text string) (s *Schema, hint string, err error) {
	if json.Valid([]byte(text)) && jsonobj.Nesting([]byte(text)) > maxNest {
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the schema is nested more than %d deep", maxNest)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // the next decoder says what is wrong
	if wrong := wrongCount("#", v); wrong != "" {
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the schema has %s; it must be a whole number from 0 to %d, without an exponent", wrong, math.MaxInt32)
	}
	s = &Schema{root: new(jsonschema.Schema), parts: map[string]*jsonschema.Schema{}, patterns: map[string]int{}, texts: map[*jsonschema.Schema]int{}}
	if err := json.Unmarshal([]byte(text), s.root); err != nil {
		return nil, `write for example {"type": "object", "required": ["severity"]}`, tapedeck.Errorf(tapedeck.Invalid, "the schema is not a JSON Schema: %s", unreadable(err))
	}
	if !slices.Contains(versions, s.root.Schema) {
		return nil, "leave out $schema", tapedeck.Errorf(tapedeck.Invalid, "the schema is of a version that is not known: %.100q", s.root.Schema)
	}
	s.note("#", s.root)
	if total := s.sizes(); total > maxPatterns {
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the patterns of the schema are too large")
	}
	if s.resolved, err = s.root.Resolve(nil); err != nil {
		return nil, "", tapedeck.Errorf(tapedeck.Invalid, "the schema cannot be used: %v", err)
	}
	if hint, err = s.bounded(); err != nil {
		return nil, hint, err
	}
	return s, "", nil
}

// Requires reports whether an object must have a member.
func (s *Schema) Requires(name string) bool { return slices.Contains(s.root.Required, name) }

// bounded refuses a schema with parts that the library follows without an end.
func (s *Schema) bounded() (hint string, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		p := s.parts[name]
		switch {
		case p.DynamicRef != "" || p.DynamicAnchor != "" || p.Anchor != "" || p.ID != "" && p != s.root || p.Ref != "" && s.ref(p) == nil:
			return "refer to parts of the schema, such as #/$defs/name", tapedeck.Errorf(tapedeck.Invalid, "the schema has an anchor, an $id within, or a $ref to something else than its own parts at %.100s", name)
		case p.MultipleOf != nil && *p.MultipleOf <= 0:
			return "", tapedeck.Errorf(tapedeck.Invalid, "the schema cannot be used: multipleOf must be above 0 at %.100s", name)
		}
	}
	if loop := s.loop(); loop != "" {
		return "refer to it from a property or an item", tapedeck.Errorf(tapedeck.Invalid, "the schema at %.100s refers to itself for the same value", loop)
	}
	return "", nil
}

// counts are the keywords of a schema that count something, and values those that have any value.
var (
	counts = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
	values = []string{"const", "enum", "default", "examples"}
)

// wrongCount returns a keyword that cannot count what it says, with its place, "" if there is
// none. It has the bounds of the library, which would say so with the names of Go's types, or not at all.
func wrongCount(at string, v any) string {
	if list, ok := v.([]any); ok {
		for i, e := range list {
			if wrong := wrongCount(at+"/"+strconv.Itoa(i), e); wrong != "" {
				return wrong
			}
		}
	}
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch e := object[name].(type) {
		case json.Number:
			d, err := decimal.Parse(e.String())
			if n, whole := d.Int(); slices.Contains(counts, name) && (err != nil || !whole || n < 0 || n > math.MaxInt32 || strings.ContainsAny(e.String(), "eE")) {
				return fmt.Sprintf("%s %.40s at %.100s", name, e, at)
			}
		case string:
			if slices.Contains(counts, name) {
				return fmt.Sprintf("%s %.40q at %.100s", name, e, at)
			}
		default:
			if !slices.Contains(values, name) {
				if wrong := wrongCount(at+"/"+name, e); wrong != "" {
					return wrong
				}
			}
		}
	}
	return ""
}

// unreadable says why a schema cannot be decoded, without the names of Go's types.
func unreadable(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:]
	if name == "" {
		name = "a schema"
	}
	kind, _, _ := strings.Cut(wrong.Value, " ")
	return name + " cannot be of the type " + kind
}

// note notes a part of the schema and those in it.
func (s *Schema) note(at string, p *jsonschema.Schema) {
	if p == nil {
		return
	}
	s.parts[at] = p
	one := func(name string, c *jsonschema.Schema) { s.note(at+"/"+name, c) }
	list := func(name string, l []*jsonschema.Schema) {
		for i, c := range l {
			one(name+"/"+strconv.Itoa(i), c)
		}
	}
	named := func(name string, m map[string]*jsonschema.Schema) {
		for k, c := range m {
			one(name+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), c)
		}
	}
	named("$defs", p.Defs)
	named("definitions", p.Definitions)
	named("properties", p.Properties)
	named("patternProperties", p.PatternProperties)
	named("dependentSchemas", p.DependentSchemas)
	named("dependencies", p.DependencySchemas)
	list("allOf", p.AllOf)
	list("anyOf", p.AnyOf)
	list("oneOf", p.OneOf)
	list("prefixItems", p.PrefixItems)
	list("items", p.ItemsArray)
	for name, c := range map[string]*jsonschema.Schema{
		"not": p.Not, "if": p.If, "then": p.Then, "else": p.Else, "items": p.Items, "additionalItems": p.AdditionalItems, "contains": p.Contains,
		"unevaluatedItems": p.UnevaluatedItems, "additionalProperties": p.AdditionalProperties, "propertyNames": p.PropertyNames,
		"unevaluatedProperties": p.UnevaluatedProperties, "contentSchema": p.ContentSchema,
	} {
		one(name, c)
	}
}

// ref returns the part that a part refers to, nil if it is none of the schema.
func (s *Schema) ref(p *jsonschema.Schema) *jsonschema.Schema {
	pointer, err := url.PathUnescape(p.Ref)
	if err != nil {
		return nil
	}
	return s.parts[pointer]
}

// same returns the parts that are compared with the same value as p.
func (s *Schema) same(p *jsonschema.Schema) (list []*jsonschema.Schema) {
	if p.Ref != "" {
		list = append(list, s.ref(p))
	}
	list = append(append(append(list, p.AllOf...), p.AnyOf...), p.OneOf...)
	for _, c := range []*jsonschema.Schema{p.Not, p.If, p.Then, p.Else} {
		if c != nil {
			list = append(list, c)
		}
	}
	for _, m := range []map[string]*jsonschema.Schema{p.DependentSchemas, p.DependencySchemas} {
		for _, c := range m {
			list = append(list, c)
		}
	}
	return list
}

// loop returns the place of a part that is compared with the same value again and again, "" if
// there is none.
func (s *Schema) loop() string {
	const open, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var visit func(p *jsonschema.Schema, depth int) bool
	visit = func(p *jsonschema.Schema, depth int) bool {
		if state[p] == open || depth > maxDepth {
			return true
		}
		if state[p] == done {
			return false
		}
		state[p] = open
		if slices.ContainsFunc(s.same(p), func(c *jsonschema.Schema) bool { return visit(c, depth+1) }) {
			return true
		}
		state[p] = done
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		if visit(s.parts[name], 0) {
			return name
		}
	}
	return ""
}

// sizes notes the sizes of what is costly in the parts, and returns that of all patterns.
func (s *Schema) sizes() (total int) {
	for _, p := range s.parts {
		patterns := slices.Collect(maps.Keys(p.PatternProperties))
		if p.Pattern != "" {
			patterns = append(patterns, p.Pattern)
		}
		for _, pattern := range patterns {
			if re, err := syntax.Parse(pattern, syntax.Perl); err == nil { // otherwise the library refuses it
				s.patterns[pattern] = patternSize(re)
				total = plus(total, s.patterns[pattern])
			}
		}
		if p.Enum != nil || p.Const != nil {
			text, _ := json.Marshal([]any{p.Enum, p.Const}) // it was JSON
			s.texts[p] = len(text)
		}
	}
	return total
}

// patternSize returns about how many instructions a pattern has.
func patternSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = plus(n, patternSize(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(1, re.Min, re.Max), math.MaxInt32)
	}
	return n
}

// Validate compares a value, with the numbers that the library knows, with the schema. A step
// compares one part of a schema with one part of a value, or with some bytes of it; a million
// of them take about two seconds. If more than steps can be needed, the error is [ErrSteps].
func (s *Schema) Validate(v any, steps int) error {
	c := comparison{schema: s, steps: map[comparing]int{}, limit: steps}
	if n := c.cost(s.root, c.part(v), 0); n > steps || c.stopped {
		return ErrSteps
	}
	return s.resolved.Validate(v)
}

// A comparison counts the steps that a comparison can take.
type comparison struct {
	schema  *Schema
	steps   map[comparing]int
	limit   int
	stopped bool // there are too many pairs, or they are too deep
}

type comparing struct {
	schema *jsonschema.Schema
	value  *part
}

// A part is a value, or the name of a property, in the value that is compared.
type part struct {
	size     int // of it and what is in it, in bytes about
	elements []*part
	names    []*part
	members  map[string]*part
}

func (c *comparison) part(v any) *part {
	p := &part{size: 8}
	switch v := v.(type) {
	case string:
		p.size += len(v)
	case []any:
		for _, e := range v {
			p.elements = append(p.elements, c.part(e))
			p.size += p.elements[len(p.elements)-1].size
		}
	case map[string]any:
		p.members = make(map[string]*part, len(v))
		for name, e := range v {
			p.members[name] = c.part(e)
			p.names = append(p.names, &part{size: 8 + len(name)})
			p.size += p.members[name].size + len(name)
		}
	}
	return p
}

// bytesOfStep is how many bytes of a value one step compares.
const bytesOfStep = 64

// plus returns a sum of steps that does not overflow.
func plus(a, b int) int { return min(a+min(b, math.MaxInt32), math.MaxInt32) }

// cost returns an upper bound of the steps.
func (c *comparison) cost(s *jsonschema.Schema, v *part, depth int) (n int) {
	key := comparing{s, v}
	if n, ok := c.steps[key]; ok {
		return n
	}
	if c.stopped = c.stopped || len(c.steps) > c.limit || depth > maxDepth; c.stopped {
		return 0
	}
	n = c.own(s, v)
	for _, p := range c.schema.same(s) {
		n = plus(n, c.cost(p, v, depth+1))
	}
	for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
		for i, p := range list[:min(len(list), len(v.elements))] {
			n = plus(n, c.cost(p, v.elements[i], depth+1))
		}
	}
	for name, p := range s.Properties {
		if e := v.members[name]; e != nil {
			n = plus(n, c.cost(p, e, depth+1))
		}
	}
	members := slices.Collect(maps.Values(v.members))
	for _, of := range []struct {
		schemas []*jsonschema.Schema
		values  []*part
	}{
		{[]*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems}, v.elements},
		{[]*jsonschema.Schema{s.AdditionalProperties, s.UnevaluatedProperties}, members},
		{slices.Collect(maps.Values(s.PatternProperties)), members},
		{[]*jsonschema.Schema{s.PropertyNames}, v.names},
	} {
		for _, p := range of.schemas {
			for _, e := range of.values {
				if p != nil {
					n = plus(n, 1+c.cost(p, e, depth+1))
				}
			}
		}
	}
	c.steps[key] = n
	return n
}

// own returns the steps of a part of the schema without those of the parts in it.
func (c *comparison) own(s *jsonschema.Schema, v *part) (n int) {
	whole := 1 + v.size/bytesOfStep // to look at all of the value
	n = 1 + len(s.Properties) + len(s.Required) + c.schema.texts[s]/bytesOfStep
	if s.Enum != nil {
		n = plus(n, min(len(s.Enum), math.MaxInt32)*whole)
	}
	n = plus(n, c.schema.patterns[s.Pattern]*whole)
	for pattern := range s.PatternProperties {
		n = plus(n, c.schema.patterns[pattern]*(len(v.names)+whole))
	}
	if s.Const != nil || s.Pattern != "" || s.MinLength != nil || s.MaxLength != nil || s.UniqueItems {
		n = plus(n, whole)
	}
	for _, m := range []map[string][]string{s.DependentRequired, s.DependencyStrings} {
		for _, names := range m {
			n = plus(n, len(names))
		}
	}
	return n
}
