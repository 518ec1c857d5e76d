package process

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// This file reports notes of Claude Code for which AG-UI has no event: permission
// modes, hooks and structured output. They become CUSTOM events whose names begin
// with "task.", and the SSE task protocol shows them. The line itself is kept, too.

// claudeSystem handles a line of the type system.
func (s *stream) claudeSystem(raw json.RawMessage, l *claudeLine) {
	switch l.Subtype {
	case "init":
		s.claudeEquipment(raw)
		s.link(l.Session)
		s.claudeProfile(raw)
	case "hook_response":
		s.claudeHook(raw)
	}
}

// claudeEquipment reports the model, the tools and the skills.
func (s *stream) claudeEquipment(raw json.RawMessage) {
	var d narrate.Equipment
	_ = json.Unmarshal(raw, &d) // what has another shape counts as absent
	s.equipped(d)
}

// claudeProfile reports the permission mode and the tools, if the mode has changed.
func (s *stream) claudeProfile(raw json.RawMessage) {
	var d struct {
		Mode  string   `json:"permissionMode"`
		Tools []string `json:"tools"`
	}
	if json.Unmarshal(raw, &d) != nil || d.Mode == "" || d.Mode == s.profile {
		return
	}
	s.profile = d.Mode
	s.custom("profile_switch", map[string]any{"profile_type": "permission_mode", "profile_name": d.Mode, "tools": orEmpty(d.Tools)})
}

// claudeHook reports a hook that has run. If the output of the hook is JSON, it has
// the decision.
func (s *stream) claudeHook(raw json.RawMessage) {
	var d struct {
		Event   string `json:"hook_event"`
		Name    string `json:"hook_name"`
		Outcome string `json:"outcome"`
		Output  string `json:"stdout"`
		Error   string `json:"stderr"`
	}
	if json.Unmarshal(raw, &d) != nil || d.Event == "" {
		return
	}
	var out struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Message  string `json:"systemMessage"`
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	_ = json.Unmarshal([]byte(d.Output), &out) // most hooks print nothing, or plain text
	_, tool, _ := strings.Cut(d.Name, ":")
	s.custom("hook_triggered", map[string]any{
		"hook_event": d.Event, "tool_name": orNil(tool),
		"decision": orNil(cmp.Or(out.Specific.Decision, out.Decision, d.Outcome)),
		"message":  orNil(cmp.Or(out.Specific.Reason, out.Reason, out.Message, d.Error)),
	})
}

// claudeOutput reports the structured output that the agent was asked for.
func (s *stream) claudeOutput(raw json.RawMessage, failed bool) {
	var d struct {
		Output json.RawMessage `json:"structured_output"`
	}
	if json.Unmarshal(raw, &d) != nil || len(d.Output) == 0 || string(d.Output) == "null" {
		return
	}
	status := "COMPLETE"
	if failed {
		status = "FAILED"
	}
	value := map[string]any{"output": d.Output, "status": status}
	var form map[string]json.RawMessage
	if json.Unmarshal(d.Output, &form) == nil && form["output"] != nil {
		for name, v := range form {
			value[name] = v
		}
	}
	s.custom("output_display", value)
}

func (s *stream) custom(typ string, value map[string]any) {
	raw, err := json.Marshal(value)
	if err == nil {
		s.n.Event(payload.Custom{Name: "task." + typ, Value: raw})
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
