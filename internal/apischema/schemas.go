package apischema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// schema is short for the type of the library.
type schema = jsonschema.Schema

// schemas collects the schemas of types by name. The name of a type is its name in
// Go, with the exceptions in typeNames.
type schemas struct {
	comments comments
	named    map[string]*schema
	types    map[string]reflect.Type // by the same names
	open     map[reflect.Type]bool   // types whose JSON has members without a Go field
}

const refPrefix = "#/components/schemas/"

// refTo returns a reference to a schema.
func refTo(name string) *schema { return &schema{Ref: refPrefix + name} }

// typeNames has the types whose schema has another name: the Go names of several
// packages are the same.
var typeNames = map[reflect.Type]string{
	reflect.TypeFor[payload.Message]():           "EventMessage",
	reflect.TypeFor[payload.ToolCall]():          "EventToolCall",
	reflect.TypeFor[payload.FunctionCall]():      "EventFunctionCall",
	reflect.TypeFor[payload.PlanEntry]():         "EventPlanEntry",
	reflect.TypeFor[payload.TokenUsage]():        "EventTokenUsage",
	reflect.TypeFor[tapedeck.PermissionOption](): "EventPermissionOption",
	reflect.TypeFor[search.Result]():             "SearchResult",
	reflect.TypeFor[search.Hit]():                "SearchHit",
	reflect.TypeFor[view.Index]():                "ReplayIndex",
	reflect.TypeFor[tapedeck.Kind]():             "ErrorKind",
	reflect.TypeFor[problem.Body]():              "Error",
	reflect.TypeFor[problem.Detail]():            "ErrorDetail",
	reflect.TypeFor[view.Task]():                 "TaskRow",
}

// enums are the string types that have a schema of their own, with their values.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[tapedeck.Status](): {
		string(tapedeck.StatusIdle), string(tapedeck.StatusPending), string(tapedeck.StatusRunning), string(tapedeck.StatusWaiting), string(tapedeck.StatusComplete),
		string(tapedeck.StatusFailed), string(tapedeck.StatusCancelled), string(tapedeck.StatusInterrupted),
	},
	reflect.TypeFor[tapedeck.Kind](): {
		string(tapedeck.Invalid), string(tapedeck.Unauthorized), string(tapedeck.Forbidden), string(tapedeck.NotFound),
		string(tapedeck.Conflict), string(tapedeck.Gone), string(tapedeck.Replaced), string(tapedeck.Precondition), string(tapedeck.TooLarge),
		string(tapedeck.Unsupported), string(tapedeck.Limited), string(tapedeck.Internal), string(tapedeck.Unavailable),
	},
	reflect.TypeFor[api.PresenceAction]():  {string(api.PresenceJoin), string(api.PresenceMove), string(api.PresenceLeave)},
	reflect.TypeFor[api.ExportView]():      {string(api.ExportAll), string(api.ExportEffective)},
	reflect.TypeFor[api.StreamEndReason](): {string(api.EndClosed), string(api.EndTerminal), string(api.EndDeleted)},
	reflect.TypeFor[view.Axis]():           {string(view.AxisTime), string(view.AxisEvents)},
}

// words has the string members that allow only these values.
var words = map[string][]string{
	"Branch.kind":             {view.BranchMain, view.BranchFork, view.BranchCopy, view.BranchRewound},
	"Permission.status":       {string(view.PermissionOpen), string(tapedeck.StatusCancelled), string(view.PermissionAnswered)},
	"Input.status":            inputStatuses,
	"Input.when":              api.Whens[1:],
	"WaitingInput.when":       api.Whens[1:],
	"Task.when":               api.Whens,
	"Started.when":            api.Whens[1:],
	"Started.status":          append([]string{string(tapedeck.StatusRunning)}, inputStatuses...),
	"DiffItem.kind":           {"message", "tool"},
	"DiffChange.kind":         {"message", "tool"},
	"DiffChange.op":           {"added", "removed", "changed"},
	"DiffLine.op":             {"-", "+", " ", "@"},
	"SearchHit.kind":          {search.DocMessage, search.DocTool, search.DocTitle},
	"Session.kind":            {string(tapedeck.KindSession), string(tapedeck.KindStream)},
	"SessionRow.kind":         {string(tapedeck.KindSession), string(tapedeck.KindStream)},
	"ContextEvent.event_type": contextTypes, "NewContextEvent.event_type": contextTypes,
	"ContextToolCall.type": {"function"},
	"ExportRequest.format": {"ndjson", "json", "markdown", "csv", "html", "asciicast"},
	"PresenceFrame.type":   {tapedeck.PresenceJoined, tapedeck.PresenceMoved, tapedeck.PresenceLeft},
	"Note.reason":          {"malformed", "unpatchable"},
	"Marker.kind":          markers,
}

var inputStatuses = []string{string(view.InputWaiting), string(view.InputSteered), string(view.InputStarted), string(view.InputWithdrawn)}

var contextTypes = []string{"system_message", "user_message", "assistant_message", "tool_call", "tool_result"}

// importFormats are the values of the parameter format of an import.
var importFormats = []string{"ndjson", "agui", "asciicast", "claude-code", "openai-messages", "auto"}

// markers are the kinds of markers in a replay index.
var markers = []string{
	view.MarkUser, view.MarkTool, view.MarkError, view.MarkCancel, view.MarkPermission, view.MarkPlan, view.MarkInstance, view.MarkWorkflow,
	view.MarkRewind, view.MarkOverwrite, view.MarkClear, view.MarkAttempt, view.MarkFork, view.MarkErase, view.MarkBookmark, view.MarkFeedback,
}

// keys are the names that the members of some objects have.
var keys = map[string]*schema{
	"ReplayIndex.marked":  {Enum: anys(markers)},
	"ReplayIndex.thinned": {Enum: anys(markers)},
	"Summary.runs":        refTo("Status"),
}

// objects are members of type json.RawMessage that are always an object.
var objects = map[string]bool{"Permission.action": true, "PresenceFrame.data": true}

// nullable are members that may be null although their field is no pointer.
var nullable = map[string]bool{"ContextMessage.content": true}

// leaves are the types whose JSON the structure of the type does not show.
var leaves = map[reflect.Type]*schema{
	reflect.TypeFor[json.RawMessage]():  {},
	reflect.TypeFor[tapedeck.Members](): {Type: "object"},
	reflect.TypeFor[time.Time]():        {Type: "string", Format: "date-time"},
	reflect.TypeFor[view.Time]():        {Type: "string", Format: "date-time"},
	reflect.TypeFor[payload.Cut](): {
		Type: "array", Items: &schema{Type: "integer"}, MinItems: new(2), MaxItems: new(2),
	},
}

// add adds the schema of a type, and of all types that it refers to, and returns a
// reference to it.
func (s *schemas) add(t reflect.Type) (*schema, error) {
	name := typeNames[t]
	if name == "" {
		name = t.Name()
	}
	return refTo(name), s.addAs(name, t)
}

func (s *schemas) addAs(name string, t reflect.Type) error {
	if have, ok := s.types[name]; ok {
		if have != t {
			return fmt.Errorf("the types %v and %v have the same name; add one to typeNames", have, t)
		}
		return nil
	}
	s.types[name] = t
	if values, ok := enums[t]; ok {
		s.named[name] = &schema{Type: "string", Enum: anys(values), Description: s.comments.of(t)}
		return nil
	}
	known := maps.Clone(leaves)
	for _, f := range fields(t) {
		if err := s.addNested(known, f.Type); err != nil {
			return err
		}
	}
	out, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return err
	}
	out.Description = s.comments.of(t)
	if s.open[t] {
		out.AdditionalProperties = nil
	}
	for _, f := range fields(t) {
		member, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		out.Properties[member] = s.member(name+"."+member, t, f, out.Properties[member], option == "")
	}
	s.named[name] = out
	return nil
}

// marker begins the comment of a schema that stands for a reference; [unmark] replaces
// it.
const marker = "ref "

// addNested adds the schemas of the named types inside a field's type, and puts such a
// stand-in into known for each.
func (s *schemas) addNested(known map[reflect.Type]*schema, t reflect.Type) error {
	if known[t] != nil {
		return nil
	}
	_, enum := enums[t]
	switch {
	case enum, t.Kind() == reflect.Struct:
		ref, err := s.add(t)
		known[t] = &schema{Comment: marker + ref.Ref}
		return err
	case t.Kind() == reflect.Map:
		if err := s.addNested(known, t.Key()); err != nil {
			return err
		}
		return s.addNested(known, t.Elem())
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return s.addNested(known, t.Elem())
	}
	return nil
}

// member returns the schema of a member of a struct. A member can be null only if
// nullable names it, or if its field is a pointer and the member is required. A slice is
// never null: the server sends []. The values of a map of pointers can be null.
func (s *schemas) member(path string, t reflect.Type, f reflect.StructField, have *schema, required bool) *schema {
	out := unmark(have)
	null := nullable[path] || f.Type.Kind() == reflect.Pointer && required
	if values := words[path]; values != nil {
		out = &schema{Type: "string", Enum: anys(values)}
	}
	if objects[path] {
		out = &schema{Type: "object"}
	}
	if shaped := shapeOf(f); shaped != nil {
		out = shaped
	}
	if names := keys[path]; names != nil {
		out.PropertyNames = names
	}
	if f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Pointer && out.AdditionalProperties != nil {
		out.AdditionalProperties = &schema{AnyOf: []*schema{unmark(out.AdditionalProperties), {Type: "null"}}}
	}
	if null {
		out = &schema{AnyOf: []*schema{out, {Type: "null"}}}
	}
	out.Description = s.comments.ofField(t, f)
	return out
}

// shapeOf returns the schema of a member of an event's data whose tag says its
// shape; see package payload.
func shapeOf(f reflect.StructField) *schema {
	switch f.Tag.Get("shape") {
	case "some":
		return &schema{Not: &schema{Type: "null"}}
	case "id":
		return &schema{Type: "string", MinLength: new(1), MaxLength: new(1024)}
	case "object":
		return &schema{Type: "object"}
	case "array":
		return &schema{Type: "array"}
	case "text":
		return &schema{AnyOf: []*schema{{Type: "string"}, {Type: "array", Items: refTo("ContentPart")}}}
	case "patch":
		return &schema{Type: "array", Items: refTo("PatchOperation")}
	}
	return nil
}

// unmark returns a schema with references for the markers, and without the null that
// the library allows for each pointer and slice.
func unmark(s *schema) *schema {
	if s == nil {
		return nil
	}
	if ref, ok := strings.CutPrefix(s.Comment, marker); ok {
		return &schema{Ref: ref}
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	} else if len(s.Types) == 1 { // a pointer to any JSON
		s.Types = nil
	}
	s.Items, s.AdditionalProperties = unmark(s.Items), unmark(s.AdditionalProperties)
	return s
}

// fields returns the fields of a struct that are members in JSON, with those of the
// structs that it embeds.
func fields(t reflect.Type) (out []reflect.StructField) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && name != "" && name != "-" {
			out = append(out, f)
		}
	}
	return out
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
