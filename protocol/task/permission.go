package task

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// permissionHook is the hook that permissions are sent as: the protocol has no event
// for a question. A client that shows hooks shows the question and its answer.
const permissionHook = "PermissionRequest"

type permissionData struct {
	Event    string          `json:"hook_event"`
	Tool     string          `json:"tool_name"`
	Decision *string         `json:"decision"`
	Message  string          `json:"message"`
	ID       string          `json:"permission_id"`
	Action   json.RawMessage `json:"action"`
	Options  json.RawMessage `json:"options"`
}

// A question is a pending permission.
type question struct {
	tool, message string
	decisions     map[string]string // by option
}

func (r *run) permissionRequested(e *tapedeck.Event) []draft {
	var d struct {
		ID         string          `json:"id"`
		ToolCallID string          `json:"toolCallId"`
		Message    string          `json:"message"`
		Action     json.RawMessage `json:"action"`
		Options    json.RawMessage `json:"options"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	if d.ID == "" {
		return nil
	}
	var about struct{ Tool string }
	_ = json.Unmarshal(d.Action, &about) // it is valid without a tool
	if c := r.calls[d.ToolCallID]; c != nil && about.Tool == "" {
		about.Tool = c.name
	}
	q := &question{tool: about.Tool, message: d.Message, decisions: map[string]string{}}
	var options []tapedeck.PermissionOption
	_ = json.Unmarshal(d.Options, &options) // an option that cannot be read keeps its id as its decision
	for _, o := range options {
		switch {
		case strings.HasPrefix(o.Kind, "allow"):
			q.decisions[o.ID] = "allow"
		case strings.HasPrefix(o.Kind, "reject"):
			q.decisions[o.ID] = "deny"
		}
	}
	add(&r.questions, d.ID, q)
	ask := "ask"
	return drafts(typeHookTriggered, permissionData{permissionHook, q.tool, &ask, d.Message, d.ID, d.Action, d.Options})
}

func (r *run) permissionAnswered(e *tapedeck.Event) []draft {
	var d struct {
		ID     string `json:"id"`
		Option string `json:"option"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	if d.ID == "" {
		return nil
	}
	q := r.questions[d.ID]
	delete(r.questions, d.ID)
	if q == nil {
		q = &question{} // it was asked before the events that the client has seen
	}
	decision := d.Option
	switch {
	case d.Option == "":
		decision = "cancelled"
	case q.decisions[d.Option] != "":
		decision = q.decisions[d.Option]
	}
	return drafts(typeHookTriggered, permissionData{permissionHook, q.tool, &decision, q.message, d.ID, nil, nil})
}
