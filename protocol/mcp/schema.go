package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tapedeck/tapedeck/docs"
)

// The schemas of the tools are those of the HTTP API: an answer has the schema of its type in
// docs/openapi.json, and a member of a request has its description.

// schema is short for the type of the library.
type schema = jsonschema.Schema

const (
	apiRef  = "#/components/schemas/"
	toolRef = "#/$defs/"
)

// components are the schemas of the HTTP API by name.
var components = sync.OnceValue(func() map[string]json.RawMessage {
	var d struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	must(json.Unmarshal(docs.OpenAPI, &d))
	return d.Components.Schemas
})

// must panics: the file is a part of the program, and a test reads every schema.
func must(err error) {
	if err != nil {
		panic(fmt.Errorf("docs/openapi.json: %w", err))
	}
}

// component returns a copy of a schema of the HTTP API.
func component(name string) *schema {
	var s schema
	must(json.Unmarshal(components()[name], &s))
	return &s
}

// answerSchema returns the schema of an answer, with the definitions that it refers to.
func answerSchema(s *schema) json.RawMessage {
	root, err := json.Marshal(s)
	must(err)
	defs := map[string]json.RawMessage{}
	collect(defs, root)
	var out map[string]json.RawMessage
	must(json.Unmarshal(root, &out))
	if len(defs) > 0 {
		out["$defs"], err = json.Marshal(defs)
		must(err)
	}
	root, err = json.Marshal(out)
	must(err)
	return json.RawMessage(strings.ReplaceAll(string(root), apiRef, toolRef))
}

var reference = regexp.MustCompile(`"` + apiRef + `(\w+)"`)

// collect adds the schemas to which a schema refers.
func collect(defs map[string]json.RawMessage, s json.RawMessage) {
	for _, m := range reference.FindAllSubmatch(s, -1) {
		if name := string(m[1]); defs[name] == nil {
			defs[name] = components()[name]
			collect(defs, defs[name])
		}
	}
}

// only returns a schema with some of its members. The first are required.
func only(s *schema, required int, names ...string) *schema {
	maps.DeleteFunc(s.Properties, func(name string, _ *schema) bool { return !slices.Contains(names, name) })
	s.Required, s.PropertyOrder = names[:required], nil
	return s
}

// with adds a member that is a number to a schema.
func with(s *schema, name, description string) {
	s.Properties[name] = &schema{Type: "integer", Description: description}
}

// A field changes the schema of a member of a request.
type field func(s *schema)

// requestSchema returns the schema of a request of type T. A member that has no description
// has that of the type of the HTTP API with the name, "" for none.
func requestSchema[T any](name string, fields map[string]field) *schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{})
	must(err)
	var described schema
	if name != "" {
		described = *component(name)
	}
	for member, p := range s.Properties {
		if i := slices.Index(p.Types, "null"); i >= 0 && len(p.Types) == 2 { // an absent member says the same
			p.Type, p.Types = p.Types[1-i], nil
		}
		if d := described.Properties[member]; d != nil && p.Description == "" {
			p.Description = d.Description
		}
	}
	for member, change := range fields {
		if change == nil {
			delete(s.Properties, member)
			continue
		}
		change(s.Properties[member])
	}
	s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(m string) bool { return s.Properties[m] == nil })
	return s
}

// number limits a member that is a number; without it the value is def.
func number(def, lowest, highest int) field {
	return func(s *schema) {
		low, high := float64(lowest), float64(highest)
		s.Minimum, s.Maximum = &low, &high
		s.Default = json.RawMessage(fmt.Sprint(def))
	}
}

// offset limits a member to offsets.
func offset(s *schema) {
	var low float64
	s.Minimum = &low
}

// oneOf limits a member to some words; without it the value is the first one.
func oneOf(words ...string) field {
	return func(s *schema) {
		choice(words...)(s)
		s.Default = json.RawMessage(fmt.Sprintf("%q", words[0]))
	}
}

// choice limits a member to some words. It may be absent.
func choice(words ...string) field {
	return func(s *schema) {
		for _, w := range words {
			s.Enum = append(s.Enum, w)
		}
	}
}
