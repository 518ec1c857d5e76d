package view

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A Permission is a question of an agent to people. Its status is one of those
// below. It ends with its answer, or with the run that asked.
type Permission struct {
	Item
	ID         string             `json:"id"`
	ToolCallID string             `json:"tool_call_id,omitempty"`
	Message    string             `json:"message,omitempty"` // the question, for people
	Action     json.RawMessage    `json:"action,omitempty"`  // what it allows, as in the event
	Options    []PermissionOption `json:"options"`
	Option     string             `json:"option,omitempty"`      // the id of the one that was chosen
	AnsweredBy string             `json:"answered_by,omitempty"` // the actor who chose
}

// A PermissionOption is an answer that can be given.
type PermissionOption struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind,omitempty"`   // see [tapedeck.PermissionOption]
	Covers string `json:"covers,omitempty"` // likewise
}

// The statuses of a [Permission].
const (
	PermissionOpen      tapedeck.Status = "open"
	PermissionAnswered  tapedeck.Status = "answered"
	PermissionCancelled tapedeck.Status = "cancelled" // nobody chose
)

func (c *Conversation) permissionRequested(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ID         string             `json:"id"`
		ToolCallID string             `json:"toolCallId"`
		Message    string             `json:"message"`
		Action     json.RawMessage    `json:"action"`
		Options    []PermissionOption `json:"options"`
	}
	if !decode(e, &d) || d.ID == "" {
		return false
	}
	if len(d.Action) > 0 && d.Action[0] != '{' {
		d.Action = nil // it says nothing that could be shown
	}
	if d.Options == nil {
		d.Options = []PermissionOption{}
	}
	l.permissions = append(l.permissions, &Permission{
		Item: item(l, e, PermissionOpen), ID: d.ID, ToolCallID: d.ToolCallID, Message: d.Message, Action: d.Action, Options: d.Options,
	})
	l.settlePermissions()
	return true
}

// permissionAnswered folds an answer. The first one counts. One that names an
// invocation is for what that has asked, whoever else uses the id.
func (c *Conversation) permissionAnswered(l *lane, e *tapedeck.Event) bool {
	var d struct {
		ID     string `json:"id"`
		Option string `json:"option"`
	}
	if !decode(e, &d) || d.ID == "" {
		return false
	}
	for _, p := range slices.Backward(l.permissions) {
		if p.ID != d.ID || e.Invocation != "" && e.Invocation != p.Invocation {
			continue
		}
		if p.Status == PermissionOpen {
			p.answer(e, d.Option)
		}
		break
	}
	return true
}

func (p *Permission) answer(e *tapedeck.Event, option string) {
	if option == "" {
		p.end(e, PermissionCancelled)
		return
	}
	p.end(e, PermissionAnswered)
	p.Option, p.AnsweredBy = option, e.Actor
}

// cancelPermissions ends what a run has asked and nobody has answered. A question
// that names no invocation is of the run that was open on its thread.
func (l *lane) cancelPermissions(invocation string, run *Run, e *tapedeck.Event) {
	for _, p := range l.permissions {
		unnamed := p.Invocation == "" && run != nil && p.Offset > run.Offset
		if p.Status == PermissionOpen && (p.Invocation == invocation || unnamed) {
			p.end(e, PermissionCancelled)
		}
	}
}

// settlePermissions lets go of the oldest one that is not open, if there are
// more than [Window]. A permission that has settled is in no view any more.
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

// permissionsAtHand returns copies.
func (l *lane) permissionsAtHand() []Permission {
	out := make([]Permission, len(l.permissions))
	for i, p := range l.permissions {
		out[i] = *p
	}
	return out
}
