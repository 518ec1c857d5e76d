package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/schema"
)

// twice is a schema of parts that each refer to the next one twice, through a part p of it.
func twice(parts int, p string) string {
	var b strings.Builder
	for i := range parts {
		next := fmt.Sprintf(p, fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[1]d"}]}`, i+1))
		fmt.Fprintf(&b, `"a%d":%s,`, i, next)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/a0","$defs":{%s"a%d":{}}}`, b.String(), parts)
}

// A schema cannot stop the server or keep it busy: the library follows references in a
// recursion.
func TestSchemas(t *testing.T) {
	const (
		itself    = "refers to itself for the same value"
		elsewhere = "something else than its own parts"
		many      = "too many steps"
		tree      = `{"$id":"https://example.com/tree","type":"object","required":["name"],"properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}}}`
	)
	list := func(of string, n int) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	var words []string
	for i := range 5000 {
		words = append(words, fmt.Sprintf(`"w%d"`, i))
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, schema, value, want string }{
		{"itself", `{"$ref":"#"}`, `1`, itself},
		{"itself in a list", `{"allOf":[{"$ref":"#"}]}`, `1`, itself},
		{"itself in one of several", `{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, `1`, itself},
		{"one of several", `{"oneOf":[{"$ref":"#"}]}`, `1`, itself},
		{"not itself", `{"not":{"$ref":"#"}}`, `1`, itself},
		{"if itself", `{"if":{"$ref":"#"}}`, `1`, itself},
		{"then itself", `{"if":true,"then":{"$ref":"#"}}`, `1`, itself},
		{"else itself", `{"if":false,"else":{"$ref":"#"}}`, `1`, itself},
		{"dependent", `{"dependentSchemas":{"a":{"$ref":"#"}}}`, `{"a":1}`, itself},
		{"dependent, as in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, `{"a":1}`, itself},
		{"two parts", `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"x":1}`, itself},
		{"a part with an odd name", `{"$ref":"#/$defs/a~1b~0c%25","$defs":{"a/b~c%":{"$ref":"#/$defs/a~1b~0c%25"}}}`, `1`, itself},
		{"a part of a part", `{"$defs":{"a":{"allOf":[true,{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a/allOf/1"}`, `1`, itself},
		{"dynamic", `{"$dynamicRef":"#"}`, `1`, elsewhere},
		{"dynamic anchor", `{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`, `1`, elsewhere},
		{"anchor", `{"$ref":"#a","$defs":{"a":{"$anchor":"a","$ref":"#a"}}}`, `1`, elsewhere},
		{"id within", `{"$ref":"#/$defs/a","$defs":{"a":{"$id":"https://example.com/a","$ref":"#"}}}`, `1`, elsewhere},
		{"multiple of nothing", `{"multipleOf":0}`, `1`, "multipleOf must be above 0"},
		{"tree", tree, `{"name":"a","children":[{"name":"b","children":[{"name":"c"}]}]}`, ""},
		{"wrong tree", tree, `{"name":"a","children":[{"name":"b","children":[{}]}]}`, "required"},
		{"deep", `{"items":{"$ref":"#"}}`, nested(500), ""},
		{"too deep", `{"items":{"$ref":"#"}}`, nested(5000), many},
		{"twice", twice(10, "%s"), `1`, ""},
		{"twice, too often", twice(46, "%s"), `1`, many},
		{"twice, in an item each", twice(46, `{"items":%s}`), nested(46), many},
		{"twice, in a property each", twice(46, `{"additionalProperties":%s}`), strings.Repeat(`{"a":`, 46) + "1" + strings.Repeat("}", 46), many},
		{"itself twice in each item", `{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested(60), many},
		{"a long list of words", `{"items":{"enum":[` + strings.Join(words, ",") + `]}}`, "[" + strings.Join(words, ",") + "]", many},
		{"words", `{"items":{"enum":[` + strings.Join(words[:100], ",") + `]}}`, "[" + strings.Join(words[:100], ",") + "]", ""},
		{"names", `{"propertyNames":` + strings.ReplaceAll(twice(46, "%s"), "#/", "#/propertyNames/") + `}`, `{"a":1}`, many},
		{"patterns of names", `{"patternProperties":{"a":` + strings.ReplaceAll(twice(30, "%s"), "#/", "#/patternProperties/a/") + `}}`, `{"a":1}`, many},
		{"a pattern that repeats", `{"pattern":"(abcdefghijklmnopqrstuvwxyz){900}"}`, `"a"`, "patterns of the schema are too large"},
		{"a pattern of names that repeats", `{"patternProperties":{"(abcdefghijklmno){900}":true,"(bcdefghijklmnop){900}":true}}`, `{"a":1}`, "patterns of the schema are too large"},
		{"a large pattern and a long text", `{"pattern":"(a|b|c|d){1000}$"}`, `"` + strings.Repeat("ab", 50_000) + `"`, many},
		{"a pattern", `{"pattern":"^[a-z]{1,60}$"}`, `"abc"`, ""},
		{"a list of long texts", `{"items":{"not":{"enum":["` + strings.Repeat("x", 100_000) + `"]}}}`, list("1", 5_000), many},
		{"an old version", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, `1`, "a version that is not known"},
		{"a large answer", `{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}}`, list(`{"a":7}`, 40_000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, err := schema.Read(c.schema)
			if err == nil {
				var v any
				if err := json.Unmarshal([]byte(c.value), &v); err != nil {
					t.Fatal(err)
				}
				err = s.Validate(v, 1_000_000)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A schema of many parts in each other is refused, and costs little.
func TestDeepSchema(t *testing.T) {
	const depth = 9000
	_, _, err := schema.Read(strings.Repeat(`{"not":`, depth) + "true" + strings.Repeat("}", depth))
	if err == nil || !strings.Contains(err.Error(), "nested more than 200 deep") {
		t.Errorf("got %v", err)
	}
}

// A schema that cannot be read is refused with its place, and without the names of Go's types.
func TestUnreadableSchemas(t *testing.T) {
	const count = "it must be a whole number from 0 to 2147483647, without an exponent"
	for text, want := range map[string]string{
		`{"minLength": 1e30}`: "the schema has minLength 1e30 at #; " + count, `{"properties": {"a": {"items": [true, {"maxItems": -1}]}}}`: "maxItems -1 at #/properties/a/items/1; " + count, `{"maxLength": 1.5}`: "maxLength 1.5 at #; " + count,
		`{"minProperties": "x"}`: `minProperties "x" at #; ` + count, `{"minContains": 1e7000}`: "minContains 1e7000 at #; " + count, `{"maxLength": 2147483648}`: count, `{"maxLength": 1e3}`: count,
		`{"maxLength": 2147483647, "minLength": 2.0, "properties": {"minLength": {"type": "integer"}}, "default": {"minLength": "x"}, "enum": [{"maxItems": -1}]}`: "",
		`{"required": "a"}`: "the schema is not a JSON Schema: required cannot be of the type string", `{"minimum": "3"}`: "minimum cannot be of the type string", `[1]`: "a schema cannot be of the type array", `{"type": 5}`: "not a JSON Schema", `{"a":`: "not a JSON Schema",
	} {
		_, _, err := schema.Read(text)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "unmarshal")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestReason: why a value does not fit is said in plain words, and in few.
func TestReason(t *testing.T) {
	const text = `{"type":"object","additionalProperties":false,"required":["list"],"properties":{
		"list":{"type":"array","items":{"type":"object","required":["a/b"],"properties":{"a/b":{"type":["string","null"]},"n":{"type":"integer","minimum":1,"maximum":9},"word":{"enum":["x","y"]}}}},"id":{"pattern":"^i"}}}`
	s, _, err := schema.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{}`:                               `the value must have "list"`,
		`{"list":{}}`:                      "list must be an array, not an object",
		`{"list":[{}]}`:                    `list[] must have "a/b"`,
		`{"list":[{"a/b":5}]}`:             "list[].a/b must be one of string, null, not an integer",
		`{"list":[{"a/b":"","n":"3"}]}`:    "list[].n must be an integer, not a string",
		`{"list":[{"a/b":"","n":0}]}`:      "list[].n must be at least 1",
		`{"list":[{"a/b":"","n":10}]}`:     "list[].n must be at most 9",
		`{"list":[{"a/b":"","word":"z"}]}`: "list[].word must be one of [x y]",
		`{"list":[],"more":1}`:             `the value cannot have "more"`,
		`{"list":[],"id":"x"}`:             `id: pattern: "x" does not match regular expression "^i"`,
		`{"list":[],"id":"` + strings.Repeat("é", 1000) + `"}`: `id: pattern: "` + strings.Repeat("é", 193) + "…",
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v, 1000); err == nil {
			t.Errorf("%.100s fits", value)
		} else if got := schema.Reason(err, "the value"); got != want {
			t.Errorf("%.100s: %s, want %s", value, got, want)
		}
	}
}
