package view

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Permission is a question of an agent to the user. It ends with its answer,
// or with the run that asked.
type Permission struct {
	Item
	ID         string             `json:"id"`
	ToolCallID string             `json:"tool_call_id,omitempty"`
	Message    string             `json:"message,omitempty"` // the question, as text for people
	Action     json.RawMessage    `json:"action,omitempty"`  // the action that needs permission, as in the event
	Options    []PermissionOption `json:"options"`
	Form       json.RawMessage    `json:"form,omitempty"`        // the fields that the user fills in, as in the event
	Option     string             `json:"option,omitempty"`      // the id of the chosen option
	AnsweredBy string             `json:"answered_by,omitempty"` // the actor who chose it
	Input      json.RawMessage    `json:"input,omitempty"`       // the values of the form, an object
}

// A PermissionOption is a possible answer.
type PermissionOption struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind,omitempty"`   // see [tapedeck.PermissionOption]
	Covers string `json:"covers,omitempty"` // see [tapedeck.PermissionOption]
}

// A [Permission] has one of these statuses.
const (
	PermissionOpen      tapedeck.Status = "open"
	PermissionAnswered  tapedeck.Status = "answered"
	PermissionCancelled tapedeck.Status = "cancelled" // its run ended, or the answer chose no option
)

func (c *Conversation) permissionRequested(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ID         string             `json:"id"`
		ToolCallID string             `json:"toolCallId"`
		Message    string             `json:"message"`
		Action     json.RawMessage    `json:"action"`
		Options    []PermissionOption `json:"options"`
		Form       json.RawMessage    `json:"form"`
	}
	if !decode(e, &d) || d.ID == "" {
		return false
	}
	if len(d.Action) > 0 && d.Action[0] != '{' {
		d.Action = nil // not an object, so it cannot be shown
	}
	if len(d.Form) > 0 && d.Form[0] != '[' {
		d.Form = nil // not an array, so it cannot be shown
	}
	if d.Options == nil {
		d.Options = []PermissionOption{}
	}
	l.permissions = append(l.permissions, &Permission{
		Item: newItem(l, e, PermissionOpen), ID: d.ID, ToolCallID: d.ToolCallID, Message: d.Message, Action: d.Action, Options: d.Options, Form: d.Form,
	})
	l.settlePermissions()
	return true
}

// permissionAnswered folds an answer. The first answer counts. If the answer
// names an invocation, it is for the newest question of that invocation,
// because others may use the same id.
func (c *Conversation) permissionAnswered(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ID     string          `json:"id"`
		Option string          `json:"option"`
		Input  json.RawMessage `json:"input"`
	}
	if !decode(e, &d) || d.ID == "" {
		return false
	}
	for _, p := range slices.Backward(l.permissions) {
		if p.ID != d.ID || e.Invocation != "" && e.Invocation != p.Invocation {
			continue
		}
		if p.Status == PermissionOpen {
			p.answer(e, d.Option, d.Input)
		}
		break
	}
	return true
}

func (p *Permission) answer(e *tapedeck.Event, option string, input json.RawMessage) {
	if option == "" {
		p.end(e, PermissionCancelled)
		return
	}
	p.end(e, PermissionAnswered)
	p.Option, p.AnsweredBy = option, e.Actor
	if len(input) > 0 && input[0] == '{' {
		p.Input = input
	}
}

// cancelPermissions ends the pending questions of a run. A question that names
// no invocation belongs to the run that was open in its thread.
func (l *lane) cancelPermissions(invocation string, run *Run, e *tapedeck.Event) {
	for _, p := range l.permissions {
		unnamed := p.Invocation == "" && run != nil && p.Offset > run.Offset
		if p.Status == PermissionOpen && (p.Invocation == invocation || unnamed) {
			p.end(e, PermissionCancelled)
		}
	}
}

// settlePermissions drops the oldest permission that is not open, if there are
// more than [Window]. No view shows a permission that has settled.
func (l *lane) settlePermissions() {
	if len(l.permissions) <= Window {
		return
	}
	i := slices.IndexFunc(l.permissions, func(p *Permission) bool { return p.Status != PermissionOpen })
	if i < 0 && len(l.permissions) > maxOpen {
		i = 0
	}
	if i >= 0 {
		l.permissions = slices.Delete(l.permissions, i, i+1)
	}
}

// loadedPermissions returns copies of the permissions.
func (l *lane) loadedPermissions() []Permission {
	out := make([]Permission, len(l.permissions))
	for i, p := range l.permissions {
		out[i] = *p
	}
	return out
}
