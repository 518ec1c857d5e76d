package process

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/proposal"
)

// This file speaks the control protocol of Claude Code. When its input and output are
// stream-json, Claude Code asks for permissions there and can be interrupted.

// object returns v as JSON. v is built from valid JSON and texts, so encoding it
// cannot fail.
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

// greetClaude returns the first messages to Claude Code: one that says that we answer
// its questions, and the task.
func greetClaude(task string) []byte {
	b := append(request("tapedeck-1", map[string]any{"subtype": "initialize"}), '\n')
	return append(b, object(userMessage(task))...)
}

func userMessage(text string) map[string]any {
	return map[string]any{
		"type": "user", "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": []any{map[string]string{"type": "text", "text": text}}},
	}
}

// tellClaude returns a message for Claude Code while it works. It gives the message to its
// model before the next call, or begins another turn with it.
func tellClaude(id, text string) []byte {
	m := userMessage(text)
	m["uuid"] = id
	return object(m)
}

func interruptClaude() []byte { return request("tapedeck-2", map[string]any{"subtype": "interrupt"}) }

// These are the options of a question of Claude Code.
const (
	optAllow  = "allow"
	optAlways = "allow_always"
	optReject = "reject"
)

// claudeRequest handles a request of Claude Code. It supports only permission to use a
// tool, and answers every other request with an error.
func (s *stream) claudeRequest(l *claudeLine) bool {
	var r struct {
		Subtype     string          `json:"subtype"`
		Tool        string          `json:"tool_name"`
		Input       json.RawMessage `json:"input"`
		UseID       string          `json:"tool_use_id"`
		Suggestions json.RawMessage `json:"permission_suggestions"`
	}
	if json.Unmarshal(l.Request, &r) != nil || r.Subtype != "can_use_tool" {
		s.attempt.send(object(map[string]any{"type": "control_response", "response": map[string]any{
			"subtype": "error", "request_id": l.RequestID, "error": "this request is not supported",
		}}))
		return false
	}
	s.asked++
	draft := proposal.FromArguments(r.Tool, r.Input)
	draft.Locate(s.attempt.dir)
	q := tapedeck.Question{
		ID: s.in.ID + ".p" + strconv.Itoa(s.asked), Message: "Use " + proposal.Text(r.Tool, maxToolName) + "?", Action: draft.Action(),
		Options: []tapedeck.PermissionOption{{ID: optAllow, Name: "Allow once", Kind: "allow_once"}},
	}
	if r.UseID != "" { // older versions do not name the call
		s.called(narrate.Call{ID: r.UseID, Name: r.Tool, Lane: l.Parent}, r.Input)
		q.ToolCallID = s.n.ToolID(r.UseID)
	}
	if len(r.Suggestions) > 2 {
		q.Options = append(q.Options, tapedeck.PermissionOption{
			ID: optAlways, Name: "Always allow", Kind: "allow_always", Covers: covers(r.Suggestions),
		})
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

// Limits of the parts of a question, in bytes.
const (
	maxToolName = 200
	maxCovers   = 2 << 10
)

// A suggestion is a rule that Claude Code stores if a person chooses "Always allow".
type suggestion struct {
	Type  string `json:"type"`
	Rules []struct {
		Tool    string `json:"toolName"`
		Content string `json:"ruleContent"`
	} `json:"rules"`
	Behavior    string   `json:"behavior"`
	Mode        string   `json:"mode"`
	Directories []string `json:"directories"`
	Destination string   `json:"destination"`
}

// destinations describes where Claude Code stores a rule.
var destinations = map[string]string{
	"session": "in this conversation", "localSettings": "in this folder, for you",
	"projectSettings": "in this folder, for everybody", "userSettings": "in all your folders",
}

// covers describes what "Always allow" permits: every rule that Claude Code suggests.
// It quotes the JSON of a rule that it does not know.
func covers(raw json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return proposal.Text(string(raw), maxCovers)
	}
	var all []string
	for _, one := range list {
		var s suggestion
		rule := ""
		if json.Unmarshal(one, &s) == nil {
			rule = s.allows()
		}
		switch where := destinations[s.Destination]; {
		case rule == "":
			all = append(all, string(one))
		case where == "":
			all = append(all, rule)
		default:
			all = append(all, rule+" "+where)
		}
	}
	return proposal.Text(strings.Join(all, "; "), maxCovers)
}

// allows describes the permission that the rule gives; "" for an unknown rule.
func (s *suggestion) allows() string {
	switch {
	case s.Type == "addRules" && s.Behavior == "allow" && len(s.Rules) > 0:
		var rules []string
		for _, r := range s.Rules {
			if r.Content == "" {
				rules = append(rules, "every use of "+r.Tool)
			} else {
				rules = append(rules, r.Tool+"("+r.Content+")")
			}
		}
		return strings.Join(rules, ", ")
	case s.Type == "setMode" && s.Mode != "":
		return "the mode " + s.Mode
	case s.Type == "addDirectories" && len(s.Directories) > 0:
		return "access to " + strings.Join(s.Directories, ", ")
	}
	return ""
}
