// Package tool has tools for a model: for the files of a folder, for commands, and for a
// list of todos.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/internal/schema"
	"github.com/tapedeck/tapedeck/payload"
)

// A Tool is a function that a model can call.
type Tool struct {
	Name        string // letters, digits, "_" and "-", at most 64
	Description string // the model reads it
	Parameters  json.RawMessage
	ReadOnly    bool // the tool changes nothing, so the default policy allows it

	// Check says in a sentence why a call would fail, as far as that is known before, and
	// returns "" otherwise: people are not asked about a call that would fail. It is nil
	// if only the tool knows.
	Check func(arguments json.RawMessage) string

	// Propose returns the action that people see in the question about a call. If it is
	// nil, they see the arguments.
	Propose func(arguments json.RawMessage) *tapedeck.PermissionAction

	// Scope returns what "Always allow" permits: every call with the same key. covers
	// describes these calls for people. If Scope is nil, it permits every call of the
	// tool.
	Scope func(arguments json.RawMessage) (key, covers string)

	// Run executes a call. When ctx is done, it stops at once and returns the result so
	// far.
	Run func(ctx context.Context, c Call) Result
}

// A Call is one use of a tool.
type Call struct {
	ID        string
	Arguments json.RawMessage // a JSON object

	// Started is called with each process before the process begins. If it returns an
	// error, the process does not begin. Nil if no caller needs it.
	Started func(payload.AgentStarted) error
}

// A Result is the answer of a tool.
type Result struct {
	Text   string
	Failed bool                // the call failed; Text says why
	Plan   []payload.PlanEntry // the new plan; nil if it has not changed
}

// Failed returns the result of a call that failed.
func Failed(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true}
}

// scope returns a [Tool.Scope] that decodes the arguments for a function. For arguments
// that cannot be decoded, "Always allow" permits only the same arguments again.
func scope[A any](of func(A) (key, covers string)) func(json.RawMessage) (string, string) {
	return func(arguments json.RawMessage) (string, string) {
		a, err := decode[A](arguments)
		if err != nil {
			return string(arguments), "exactly these arguments"
		}
		return of(a)
	}
}

// propose returns a [Tool.Propose] that decodes the arguments for a function.
func propose[A any](of func(A) proposal.Draft) func(json.RawMessage) *tapedeck.PermissionAction {
	return func(arguments json.RawMessage) *tapedeck.PermissionAction {
		a, err := decode[A](arguments)
		d := proposal.Draft{Arguments: arguments} // the call will fail, but people see all of it
		if err == nil {
			d = of(a)
		}
		return d.Action()
	}
}

// decode decodes arguments. It refuses unknown members, because the model must learn that
// they have no effect.
func decode[A any](arguments json.RawMessage) (a A, err error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	return a, d.Decode(&a)
}

// build returns a tool that decodes the arguments for a function. members is the JSON
// Schema of the arguments' members.
func build[A any](name, description, members string, required []string, run func(context.Context, Call, A) Result) Tool {
	if required == nil {
		required = []string{}
	}
	text, err := json.Marshal(map[string]any{
		"type": "object", "properties": json.RawMessage(members), "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic("tool " + name + ": " + err.Error()) // members is a constant that is not JSON
	}
	return Tool{Name: name, Description: description, Parameters: text, Check: Checker[A](text), Run: func(ctx context.Context, c Call) Result {
		a, err := decode[A](c.Arguments)
		if err != nil {
			return Failed("%s", unreadable(err))
		}
		return run(ctx, c, a)
	}}
}

// checked adds what a function knows before a call to the check of a tool.
func checked[A any](t Tool, of func(A) Result) Tool {
	fits := t.Check
	t.Check = func(arguments json.RawMessage) string {
		if why := fits(arguments); why != "" {
			return why
		}
		a, err := decode[A](arguments)
		if err != nil {
			return unreadable(err)
		}
		if bad := of(a); bad.Failed {
			return bad.Text
		}
		return ""
	}
	return t
}

// Misfit says that arguments do not match the schema, for an error of the library.
func Misfit(err error) string {
	return "The arguments do not match the schema: " + schema.Reason(err, "the arguments") + "."
}

// unreadable says why arguments cannot be decoded, without the names of Go's types.
func unreadable(err error) string {
	why := "they are not as the schema says"
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		why = fmt.Sprintf("%s cannot be %.40s", wrong.Field, wrong.Value)
	} else if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		why = "they cannot have " + name
	}
	return "The arguments do not match the schema: " + why + "."
}

// Checker returns a [Tool.Check] for a schema of our own, and the type of the arguments.
func Checker[A any](text json.RawMessage) func(json.RawMessage) string {
	var s jsonschema.Schema
	err := json.Unmarshal(text, &s)
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = s.Resolve(nil)
	}
	if err != nil {
		panic("the schema of a tool: " + err.Error()) // it is a constant
	}
	return func(arguments json.RawMessage) string {
		var given map[string]any
		if err := json.Unmarshal(arguments, &given); err != nil {
			return unreadable(err)
		}
		for name, v := range given { // models write null for what they leave out
			if v == nil && !slices.Contains(s.Required, name) {
				delete(given, name)
			}
		}
		if err := resolved.Validate(given); err != nil {
			return Misfit(err)
		}
		if _, err := decode[A](arguments); err != nil {
			return unreadable(err)
		}
		return ""
	}
}

// readOnly marks a tool that changes nothing.
func readOnly(t Tool) Tool {
	t.ReadOnly = true
	return t
}
