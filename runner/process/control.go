package process

import (
	"encoding/json"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
)

// The control protocol of Claude Code: with its input and output in stream-json
// it asks there for permissions, and can be interrupted.

// object returns v as JSON. It is made of what was JSON, or of texts.
func object(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return b
}

func request(id string, r map[string]any) []byte {
	return object(map[string]any{"type": "control_request", "request_id": id, "request": r})
}

// greetClaude returns what Claude Code is told first: that we answer its
// questions, and the task.
func greetClaude(task string) []byte {
	b := append(request("tapedeck-1", map[string]any{"subtype": "initialize"}), '\n')
	return append(b, object(map[string]any{
		"type": "user", "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": []any{map[string]string{"type": "text", "text": task}}},
	})...)
}

func interruptClaude() []byte { return request("tapedeck-2", map[string]any{"subtype": "interrupt"}) }

// The options that are offered when Claude Code asks.
const (
	optAllow  = "allow"
	optAlways = "allow_always"
	optReject = "reject"
)

// claudeAsks takes a request of Claude Code. It asks only whether it may use a
// tool; what else it asks we cannot do.
func (s *stream) claudeAsks(l *claudeLine) bool {
	var r struct {
		Subtype     string          `json:"subtype"`
		Tool        string          `json:"tool_name"`
		Input       json.RawMessage `json:"input"`
		UseID       string          `json:"tool_use_id"`
		Suggestions json.RawMessage `json:"permission_suggestions"`
	}
	if json.Unmarshal(l.Request, &r) != nil || r.Subtype != "can_use_tool" {
		s.attempt.send(object(map[string]any{"type": "control_response", "response": map[string]any{
			"subtype": "error", "request_id": l.RequestID, "error": "this cannot be asked here",
		}}))
		return false
	}
	s.asked++
	q := tapedeck.PermissionRequestedData{
		ID: s.in.ID + ".p" + strconv.Itoa(s.asked), Message: "Use " + r.Tool + "?",
		Options: []tapedeck.PermissionOption{{ID: optAllow, Name: "Allow", Kind: "allow_once"}},
	}
	if r.UseID != "" { // older ones do not say which call it is about
		s.called(narrate.Call{ID: r.UseID, Name: r.Tool, Lane: l.Parent}, r.Input)
		q.ToolCallID = s.n.ToolID(r.UseID)
	}
	if len(r.Suggestions) > 2 {
		q.Options = append(q.Options, tapedeck.PermissionOption{ID: optAlways, Name: "Always allow", Kind: "allow_always"})
	}
	q.Options = append(q.Options, tapedeck.PermissionOption{ID: optReject, Name: "Reject", Kind: "reject_once"})
	s.ask(q, func(option string) []byte {
		answer := map[string]any{"behavior": "deny", "message": "The user does not allow this."}
		if option == optAllow || option == optAlways && len(r.Suggestions) > 2 {
			answer = map[string]any{"behavior": "allow", "updatedInput": r.Input}
		}
		if option == optAlways && len(r.Suggestions) > 2 {
			answer["updatedPermissions"] = r.Suggestions
		}
		return object(map[string]any{"type": "control_response", "response": map[string]any{
			"subtype": "success", "request_id": l.RequestID, "response": answer,
		}})
	})
	return true
}
