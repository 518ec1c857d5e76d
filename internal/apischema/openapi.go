package apischema

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// The structs below are the parts of an OpenAPI document that we use. See
// https://spec.openapis.org/oas/v3.1.1.html.

type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       info                             `json:"info"`
	Servers    []map[string]string              `json:"servers"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`
}

type info struct {
	Title       string            `json:"title"`
	Description string            `json:"description"`
	License     map[string]string `json:"license"`
	Version     string            `json:"version"`
}

type components struct {
	Schemas   map[string]*schema  `json:"schemas"`
	Responses map[string]response `json:"responses"`
}

type operation struct {
	ID          string              `json:"operationId"`
	Summary     string              `json:"summary"`
	Description string              `json:"description,omitempty"`
	Parameters  []parameter         `json:"parameters,omitempty"`
	Body        *requestBody        `json:"requestBody,omitempty"`
	Responses   map[string]response `json:"responses"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *schema `json:"schema"`
}

type requestBody struct {
	Required bool             `json:"required,omitempty"`
	Content  map[string]media `json:"content"`
}

type media struct {
	Schema *schema            `json:"schema,omitempty"`
	Frames map[string]*schema `json:"x-sse-events,omitempty"` // of an event stream: the data of each kind of frame
}

type response struct {
	Ref         string            `json:"$ref,omitempty"`
	Description string            `json:"description,omitempty"`
	Headers     map[string]header `json:"headers,omitempty"`
	Content     map[string]media  `json:"content,omitempty"`
}

type header struct {
	Description string  `json:"description,omitempty"`
	Schema      *schema `json:"schema"`
}

// A description is all that the generated files are made from.
type description struct {
	schemas
	sections   map[string]*section
	operations map[string]map[string]*operation // by path and method
	events     []eventType
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
	typeLines  = "application/x-ndjson"
)

// describe collects the description.
func describe(root string) (*description, error) {
	comments, err := readComments(root)
	if err != nil {
		return nil, err
	}
	d := &description{
		schemas:    schemas{comments: comments, named: map[string]*schema{}, types: map[string]reflect.Type{}, open: map[reflect.Type]bool{}},
		operations: map[string]map[string]*operation{},
	}
	if d.sections, err = readSections(root); err != nil {
		return nil, err
	}
	if d.events, err = d.addEvents(); err != nil {
		return nil, err
	}
	for _, v := range []any{view.Item{}, problem.Body{}, api.CaughtUp{}, api.StreamEnd{}, api.PresenceFrame{}, api.ImportPreview{}, api.RedactionPreview{}} {
		if _, err := d.add(reflect.TypeOf(v)); err != nil {
			return nil, err
		}
	}
	for _, r := range rest.Routes() {
		if err := d.addRoute(&r); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
		}
	}
	d.named["Events"].Properties["events"].Items = &schema{AnyOf: []*schema{refTo("Event"), refTo("TaskEvent"), refTo("ChannelEvent")}}
	d.openAnswers()
	d.reword()
	return d, nil
}

// openAnswers allows members that are not described in everything but requests: a
// newer server may send more. A request with such a member is an error.
func (d *description) openAnswers() {
	closed := map[string]bool{"Redaction": true}
	for _, r := range rest.Routes() {
		if r.Request != nil {
			closed[requestName(reflect.TypeOf(r.Request))] = true
		}
	}
	for name, s := range d.named {
		if t := d.types[name]; t != nil && t.Kind() == reflect.Struct && !closed[name] {
			s.AdditionalProperties = nil
		}
	}
}

func (d *description) document() *document {
	return &document{
		OpenAPI: "3.1.1",
		Info: info{
			Title: "Tapedeck",
			Description: "A durable session log for AI agents. docs/http.md describes the API in words, docs/events.md the events. " +
				"A body member or a parameter that the server does not know is an error; the parameter token is allowed everywhere. " +
				"Clients must accept members of answers that are not described here.",
			License: map[string]string{"name": "See LICENSE"},
			Version: strings.TrimPrefix(rest.Root, "/api/"),
		},
		Servers: []map[string]string{{"url": rest.Root}},
		Paths:   d.operations,
		Components: components{
			Schemas:   d.named,
			Responses: map[string]response{"Error": {Description: "An error. Its kind determines the status, except for 405 and 408, whose kind is invalid.", Content: jsonOf(refTo("Error"))}},
		},
	}
}

func jsonOf(s *schema) map[string]media { return map[string]media{typeJSON: {Schema: s}} }

// requestName returns the name of the schema of a request. A type of package rest
// embeds the type of package api that it extends, and has its name.
func requestName(t reflect.Type) string {
	if strings.HasSuffix(t.PkgPath(), "/rest") && t.NumField() > 0 && t.Field(0).Anonymous {
		return t.Field(0).Name
	}
	return t.Name()
}

func (d *description) addRoute(r *rest.Route) error {
	op := &operation{ID: idOf(r), Summary: r.Summary, Responses: map[string]response{"default": {Ref: "#/components/responses/Error"}}}
	doc := d.sections[r.Method+" "+r.Path]
	if doc == nil {
		doc = &section{}
	}
	op.Description = doc.text
	for _, name := range pathNames(r.Path) {
		op.Parameters = append(op.Parameters, parameter{
			Name: name, In: "path", Required: true, Description: pathParameters[name],
			Schema: &schema{Type: "string", MinLength: new(1)},
		})
	}
	for _, name := range r.Parameters {
		p, err := queryParameter(r, name, doc)
		if err != nil {
			return err
		}
		op.Parameters = append(op.Parameters, p)
	}
	if r.Request != nil {
		name := requestName(reflect.TypeOf(r.Request))
		if err := d.addAs(name, reflect.TypeOf(r.Request)); err != nil {
			return err
		}
		op.Body = &requestBody{Required: !r.Optional, Content: jsonOf(refTo(name))}
	}
	answer := response{Description: http.StatusText(r.Status)}
	if r.Answer != nil {
		ref, err := d.add(reflect.TypeOf(r.Answer))
		if err != nil {
			return err
		}
		answer.Content = jsonOf(ref)
	}
	if r.Status == http.StatusCreated && r.Answer != nil {
		answer.Headers = map[string]header{"Location": {Description: "The path of what was created.", Schema: &schema{Type: "string"}}}
	}
	op.Responses[strconv.Itoa(r.Status)] = answer
	d.extend(r, op)
	if d.operations[r.Path] == nil {
		d.operations[r.Path] = map[string]*operation{}
	}
	d.operations[r.Path][strings.ToLower(r.Method)] = op
	return nil
}

// idOf returns the name of an operation, such as postSessionsRewind.
func idOf(r *rest.Route) string {
	id := strings.ToLower(r.Method)
	for part := range strings.FieldsFuncSeq(r.Path, func(c rune) bool { return c == '/' || c == '-' || c == '.' }) {
		if part[0] != '{' {
			id += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	if strings.HasSuffix(r.Path, "}") {
		id += "ById"
	}
	return id
}

func pathNames(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

var pathParameters = map[string]string{"id": "The id of the session.", "pid": "The id of the permission.", "iid": "The id of the instance.", "input": "The id of the input.", "name": "The name of the workflow.", "tid": "The id of the token."}

// extend adds what the table of routes does not say: bodies and answers that are not
// one JSON object, and headers.
func (d *description) extend(r *rest.Route, op *operation) {
	frames := map[string]*schema{"message": refTo("Event"), "caught-up": refTo("CaughtUp"), "end": refTo("StreamEnd"), "presence": refTo("PresenceFrame")}
	stream := media{Schema: &schema{Type: "string", Description: "Server-Sent Events."}, Frames: frames}
	ok := strconv.Itoa(r.Status)
	answer := op.Responses[ok]
	switch r.Method + " " + r.Path {
	case "POST /sessions/{id}/events":
		one := refTo("NewEvent")
		op.Body = &requestBody{Required: true, Content: map[string]media{
			typeJSON:  {Schema: &schema{AnyOf: []*schema{one, {Type: "array", Items: one}}}},
			typeLines: {Schema: &schema{Type: "string", Description: "One NewEvent per line."}},
		}}
		answer.Headers = etag("The next offset. Absent if the answer has one line per append.")
		answer.Content[typeLines] = media{Schema: &schema{Type: "string", Description: "One ack or error per line of the body, if Accept asks for it. The body may stay open."}}
		for _, h := range [][2]string{
			{"If-Match", "Append only if this is the next offset."}, {"Producer-Id", "The producer, for safe repetitions."},
			{"Producer-Epoch", "How often the producer has started before, from 0."}, {"Producer-Seq", "The number of the append since that start, from 0."},
		} {
			op.Parameters = append(op.Parameters, headerParameter(h[0], h[1]))
		}
	case "GET /sessions/{id}/events":
		answer.Content[typeStream] = stream
	case "GET /sessions/{id}/stream":
		answer.Content = map[string]media{typeStream: stream}
		op.Responses["204"] = response{Description: "There is nothing more to wait for: stop reconnecting."}
		op.Parameters = append(op.Parameters, headerParameter("Last-Event-ID", "Continue after this offset. It has priority over lastEventId and fromOffset."))
	case "POST /sessions/{id}/export":
		answer.Description = "The file; with preview, what would be left out of it."
		file := &schema{Type: "string", ContentEncoding: "binary"}
		answer.Content = map[string]media{
			typeJSON: {Schema: &schema{Description: "A RedactionPreview with preview; otherwise the file of the format json.", AnyOf: []*schema{refTo("RedactionPreview"), {Type: "object"}}}},
		}
		for _, t := range []string{typeLines, "text/markdown", "text/csv", "text/html", "application/x-asciicast"} {
			answer.Content[t] = media{Schema: file}
		}
	case "GET /openapi.json":
		answer.Content = jsonOf(&schema{Type: "object"})
		op.Responses["304"] = response{Description: "Nothing has changed."}
	case "PUT /workflows/{name}":
		op.Body.Content["application/xml"] = media{Schema: &schema{Type: "string", Description: "The diagram itself."}}
	case "POST /import":
		op.Body = &requestBody{Required: true, Content: map[string]media{}}
		for _, t := range []string{"application/octet-stream", typeJSON, typeLines} {
			op.Body.Content[t] = media{}
		}
		answer.Headers = nil
		op.Responses["200"] = response{Description: "With preview: what would be created.", Content: jsonOf(refTo("ImportPreview"))}
	}
	if slices.Contains(r.Parameters, "at") && r.Path != "/sessions/{id}/events/history" { // a view
		answer.Headers = etag("Changes when the view does.")
		op.Parameters = append(op.Parameters, headerParameter("If-None-Match", "Answer 304 if the view still has this ETag."))
		op.Responses["304"] = response{Description: "Nothing has changed."}
	}
	op.Responses[ok] = answer
}

func etag(what string) map[string]header {
	return map[string]header{"ETag": {Description: what, Schema: &schema{Type: "string"}}}
}

func headerParameter(name, what string) parameter {
	return parameter{Name: name, In: "header", Description: what, Schema: &schema{Type: "string"}}
}

// queryParameter describes a parameter. docs/http.md has the words.
func queryParameter(r *rest.Route, name string, doc *section) (parameter, error) {
	p := parameter{Name: name, In: "query", Description: doc.parameters[name]}
	if p.Description == "" {
		p.Description = viewParameters[name]
	}
	if p.Description == "" {
		return p, fmt.Errorf("docs/http.md does not describe the parameter %s", name)
	}
	p.Required = slices.Contains([]string{"GET /diff a", "GET /diff b", "GET /search q", "DELETE /sessions/{id}/instances/{iid}/events after"}, r.Method+" "+r.Path+" "+name)
	p.Schema = querySchema(r, name)
	return p, nil
}

// formatsOf returns the values of the parameter format, nil if they are not listed.
func formatsOf(r *rest.Route) []any {
	switch {
	case r.Path == "/import":
		return anys(importFormats)
	case r.Path == "/sessions/{id}/summary":
		return []any{"native", "channels"}
	case slices.Contains(r.Parameters, "channel"):
		return []any{"native", "task", "channels"}
	}
	return nil
}

// querySchema returns the schema of the value of a parameter.
func querySchema(r *rest.Route, name string) *schema {
	isFilter := slices.Contains(r.Parameters, "channel")
	isTime := r.Path == "/sessions" || r.Path == "/search"
	text := &schema{Type: "string"}
	offset := &schema{Type: "integer", Minimum: new(0.0)}
	oneOf := func(values ...any) *schema { return &schema{Type: "string", Enum: values} }
	list := func(of *schema) *schema { return &schema{Type: "array", Items: of} }
	switch name {
	case "at", "fromOffset", "lastEventId", "before", "at_a", "at_b":
		return offset
	case "after":
		return &schema{Type: "integer", Minimum: new(-1.0)}
	case "from", "to":
		if !isTime {
			return offset
		}
	case "limit":
		return &schema{Type: "integer", Minimum: new(1.0)}
	case "reverse", "summary":
		return &schema{Type: "boolean"}
	case "preview":
		return oneOf("1", "true", "0", "false")
	case "channel":
		return list(oneOf(
			tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
			tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
		))
	case "kind":
		return oneOf(search.DocMessage, search.DocTool, search.DocTitle)
	case "label":
		return list(text)
	case "thread", "type", "invocation":
		if isFilter || r.Path == "/sessions/{id}/events/history" {
			return list(text)
		}
	case "sort":
		return oneOf("created", "activity", "title", "tokens", "cost", "duration", "failures")
	case "order":
		return oneOf("asc", "desc")
	case "view":
		return oneOf("all", "effective")
	case "format":
		if formats := formatsOf(r); formats != nil {
			return oneOf(formats...)
		}
	case "begin":
		return oneOf("task", "new")
	case "until":
		return oneOf("terminal", "none")
	case "status":
		if r.Path == "/sessions" {
			return &schema{AnyOf: []*schema{refTo("Status"), {Const: new(any("closed"))}}}
		}
		return refTo("Status")
	}
	return text
}

// viewParameters describe parameters that docs/http.md describes in prose.
var viewParameters = map[string]string{
	"at":       "only the events before this offset; without it, all events",
	"thread":   "only this thread",
	"limit":    "the largest number of items in the answer; it has the newest ones",
	"before":   "only items that began before this offset",
	"instance": "of this agent instance",
	"a":        "a session", "b": "the other session",
	"at_a": "session a as it was before this offset", "at_b": "session b as it was before this offset",
	"from": "the first sequence number wanted", "after": "the sequence number before the first one wanted",
	"preview": "1: answer with what would be done, and do nothing",
}
