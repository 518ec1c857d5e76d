package rest

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// The task protocol has no event for a question, so a question and its answer are
// hooks of the agent: a client that shows hooks shows what is to be allowed.
const taskPermission = "PermissionRequest"

type permissionData struct {
	Event    string          `json:"hook_event"`
	Tool     string          `json:"tool_name"`
	Decision *string         `json:"decision"`
	Message  string          `json:"message"`
	ID       string          `json:"permission_id"`
	Action   json.RawMessage `json:"action"`
	Options  json.RawMessage `json:"options"`
}

// A taskQuestion is one that is open.
type taskQuestion struct {
	tool, message string
	decisions     map[string]string // by option
}

func (r *taskRun) permissionRequested(e *tapedeck.Event) []told {
	var d struct {
		ID         string          `json:"id"`
		ToolCallID string          `json:"toolCallId"`
		Message    string          `json:"message"`
		Action     json.RawMessage `json:"action"`
		Options    json.RawMessage `json:"options"`
	}
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	if d.ID == "" {
		return nil
	}
	var about struct{ Tool string }
	_ = json.Unmarshal(d.Action, &about) // an action need not name a tool
	if c := r.calls[d.ToolCallID]; c != nil && about.Tool == "" {
		about.Tool = c.name
	}
	q := &taskQuestion{tool: about.Tool, message: d.Message, decisions: map[string]string{}}
	var options []tapedeck.PermissionOption
	_ = json.Unmarshal(d.Options, &options) // what cannot be read decides as its own id
	for _, o := range options {
		switch {
		case strings.HasPrefix(o.Kind, "allow"):
			q.decisions[o.ID] = "allow"
		case strings.HasPrefix(o.Kind, "reject"):
			q.decisions[o.ID] = "deny"
		}
	}
	open(&r.questions, d.ID, q)
	ask := "ask"
	return tell(taskHookTriggered, permissionData{taskPermission, q.tool, &ask, d.Message, d.ID, d.Action, d.Options})
}

func (r *taskRun) permissionAnswered(e *tapedeck.Event) []told {
	var d struct {
		ID     string `json:"id"`
		Option string `json:"option"`
	}
	_ = json.Unmarshal(e.Data, &d) // see pieceOf
	if d.ID == "" {
		return nil
	}
	q := r.questions[d.ID]
	delete(r.questions, d.ID)
	if q == nil {
		q = &taskQuestion{} // it was asked before what the client has seen
	}
	decision := d.Option
	switch {
	case d.Option == "":
		decision = "cancelled"
	case q.decisions[d.Option] != "":
		decision = q.decisions[d.Option]
	}
	return tell(taskHookTriggered, permissionData{taskPermission, q.tool, &decision, q.message, d.ID, nil, nil})
}
