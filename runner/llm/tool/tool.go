// Package tool has the tools that a model can be given: files and commands of a
// folder, and a list of what is to do.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
)

// A Tool is something that a model can call.
type Tool struct {
	Name        string // letters, digits, "_" and "-", at most 64
	Description string // for the model
	Parameters  json.RawMessage
	ReadOnly    bool // it changes nothing, so that nobody needs to be asked

	// Propose returns what people are shown before they allow a call. Nil: they
	// are shown its arguments.
	Propose func(arguments json.RawMessage) *tapedeck.PermissionAction

	// Scope returns how far it reaches when people always allow a call: to every
	// call with the same key. covers says so to people. Nil: to every call of the
	// tool.
	Scope func(arguments json.RawMessage) (key, covers string)

	// Run carries out a call. When ctx is done it stops at once, and returns what
	// there is to say.
	Run func(ctx context.Context, c Call) Result
}

// A Call is one use of a tool.
type Call struct {
	ID        string
	Arguments json.RawMessage // a JSON object

	// Started is told of each process before that begins, which it does only if
	// the answer is nil. Nil if nobody is to be told.
	Started func(payload.AgentStarted) error
}

// A Result is what a tool answers.
type Result struct {
	Text   string
	Failed bool                // the text says why
	Plan   []payload.PlanEntry // the plan from now on; nil if it stays as it is
}

// Failed returns the result of a call that failed.
func Failed(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true}
}

// scope makes a Scope of a function that takes arguments decoded. Arguments that
// do not fit are allowed only as they are.
func scope[A any](of func(A) (key, covers string)) func(json.RawMessage) (string, string) {
	return func(arguments json.RawMessage) (string, string) {
		a, err := decode[A](arguments)
		if err != nil {
			return string(arguments), "exactly these arguments"
		}
		return of(a)
	}
}

// propose makes a Propose of a function that takes arguments decoded.
func propose[A any](of func(A) proposal.Draft) func(json.RawMessage) *tapedeck.PermissionAction {
	return func(arguments json.RawMessage) *tapedeck.PermissionAction {
		a, err := decode[A](arguments)
		d := proposal.Draft{Arguments: arguments} // the call fails, but nothing is hidden
		if err == nil {
			d = of(a)
		}
		return d.Action()
	}
}

// decode reads arguments. A model that invents some must learn that they do
// nothing.
func decode[A any](arguments json.RawMessage) (a A, err error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	return a, d.Decode(&a)
}

// build makes a tool of a function that takes its arguments decoded. The schema
// is the members of the arguments, as JSON.
func build[A any](name, description, members string, required []string, run func(context.Context, Call, A) Result) Tool {
	if required == nil {
		required = []string{}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": json.RawMessage(members), "required": required, "additionalProperties": false,
	})
	if err != nil {
		panic("tool " + name + ": " + err.Error()) // its author has written no JSON
	}
	return Tool{Name: name, Description: description, Parameters: schema, Run: func(ctx context.Context, c Call) Result {
		a, err := decode[A](c.Arguments)
		if err != nil {
			return Failed("The arguments do not fit: %s.", strings.TrimPrefix(err.Error(), "json: "))
		}
		return run(ctx, c, a)
	}}
}

// readOnly marks a tool that changes nothing.
func readOnly(t Tool) Tool {
	t.ReadOnly = true
	return t
}
