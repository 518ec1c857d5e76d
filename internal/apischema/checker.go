package apischema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Checker compares requests and answers with the description of the API. It is
// strict, so that tests find what the description lacks: an answer must not have
// members that are not described.
type Checker struct {
	paths map[string]map[string]*operation
	defs  map[string]*schema

	mu       sync.Mutex
	resolved map[*schema]*jsonschema.Resolved
}

const defsPrefix = "#/$defs/"

// NewChecker returns a checker for the content of openapi.json.
func NewChecker(openAPI []byte) (*Checker, error) {
	var d document
	openAPI = bytes.ReplaceAll(openAPI, []byte(refPrefix), []byte(defsPrefix))
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, err
	}
	c := &Checker{paths: d.Paths, defs: d.Components.Schemas, resolved: map[*schema]*jsonschema.Resolved{}}
	open := map[string]bool{"Envelope": true, "NewEvent": true, "TaskEvent": true, "ChannelEvent": true, "OtherEvent": true}
	c.reach("KnownEvent", open)
	for name, s := range c.defs {
		if s.Properties != nil && s.AdditionalProperties == nil && !open[name] {
			s.AdditionalProperties = &schema{Not: &schema{}}
		}
	}
	return c, nil
}

// reach adds a schema and all that it refers to.
func (c *Checker) reach(name string, to map[string]bool) {
	if to[name] {
		return
	}
	to[name] = true
	c.reachFrom(c.defs[name], to)
}

// reachFrom adds all schemas that s refers to.
func (c *Checker) reachFrom(s *schema, to map[string]bool) {
	text, _ := json.Marshal(s) // it was decoded from JSON
	for part := range strings.SplitSeq(string(text), `"`) {
		if other, ok := strings.CutPrefix(part, defsPrefix); ok {
			c.reach(other, to)
		}
	}
}

// Schema checks a value against the schema of a name, such as Session.
func (c *Checker) Schema(name string, value []byte) error {
	if c.defs[name] == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	return c.check(c.defs[name], value)
}

func (c *Checker) check(s *schema, value []byte) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	r, err := c.resolve(s)
	if err != nil {
		return err
	}
	return r.Validate(v)
}

// resolve returns a schema with its references resolved.
func (c *Checker) resolve(s *schema) (*jsonschema.Resolved, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.resolved[s]; r != nil {
		return r, nil
	}
	root, names := s.CloneSchemas(), map[string]bool{}
	c.reachFrom(s, names)
	root.Defs = map[string]*schema{} // those that it needs: there are hundreds
	for name := range names {
		root.Defs[name] = c.defs[name]
	}
	r, err := root.Resolve(nil)
	c.resolved[s] = r
	return r, err
}

// operation returns the operation of a request.
func (c *Checker) operation(method, path string) (*operation, error) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var found *operation
	for pattern, methods := range c.paths {
		if op := methods[strings.ToLower(method)]; op != nil && matchPath(pattern, path) && (found == nil || !strings.Contains(pattern, "{")) {
			found = op
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s %s is not described", method, path)
	}
	return found, nil
}

func matchPath(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") && h != "" })
}

// Request checks a request that the server has accepted. path is below the root of
// the API.
func (c *Checker) Request(method, path string, query url.Values, contentType string, body []byte) error {
	op, err := c.operation(method, path)
	if err != nil {
		return err
	}
	for name := range query {
		if name != "token" && !slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.In == "query" && p.Name == name }) {
			return fmt.Errorf("the parameter %s is not described", name)
		}
	}
	if len(body) == 0 {
		return nil
	}
	if op.Body == nil {
		return fmt.Errorf("a body is not described")
	}
	t, _, _ := mime.ParseMediaType(contentType)
	m, ok := op.Body.Content[t]
	if !ok {
		return fmt.Errorf("a body of type %s is not described", t)
	}
	if t != typeJSON || m.Schema == nil {
		return nil
	}
	return c.check(m.Schema, body)
}

// Answer checks an answer.
func (c *Checker) Answer(method, path string, status int, contentType string, body []byte) error {
	if status >= http.StatusBadRequest {
		return c.Schema("Error", body)
	}
	op, err := c.operation(method, path)
	if err != nil {
		return err
	}
	r, ok := op.Responses[strconv.Itoa(status)]
	if !ok {
		return fmt.Errorf("the status %d is not described", status)
	}
	if len(body) == 0 {
		return nil
	}
	t, _, _ := mime.ParseMediaType(contentType)
	m, ok := r.Content[t]
	if !ok {
		return fmt.Errorf("an answer of type %s is not described", t)
	}
	if t != typeJSON {
		return nil
	}
	return c.check(m.Schema, body)
}
