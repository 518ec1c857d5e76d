package testmodel

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A tool is a tool of the agent. Agents use different names for tools and arguments, so
// a call is built from the schema.
type tool struct {
	name, description string
	schema            schema
}

// A schema is the part of JSON Schema that the tools of agents use.
type schema struct {
	Type       any               `json:"type"` // a string, or several
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	Enum       []any             `json:"enum"`
}

func newTool(name, description string, parameters json.RawMessage) tool {
	t := tool{name: name, description: description}
	_ = json.Unmarshal(parameters, &t.schema) // a tool without a schema has no arguments
	return t
}

func (s *schema) is(typ string) bool {
	if list, ok := s.Type.([]any); ok {
		return slices.Contains(list, any(typ))
	}
	return strings.EqualFold(typ, text(s.Type)) // Gemini writes types in capitals
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

var (
	shellName        = regexp.MustCompile(`(?i)^(.*__)?(bash|shell|local_shell|shell_command|exec_command|run_command|run_shell_command|terminal)$`)
	shellDescription = regexp.MustCompile(`(?i)\b(shell|bash) command`)
	todoName         = regexp.MustCompile(`(?i)todo|^update_plan$|^task_?(create|update)$`)
	todoReader       = regexp.MustCompile(`(?i)read|list|get`)
)

// workCommand makes a file. It has no character that JSON can encode in two ways.
const workCommand = "echo hello from the tool | tee made-by-agent.txt"

// shellCall returns a function that calls the first tool that runs commands.
func shellCall(command string) func([]tool) (call, bool) {
	return func(tools []tool) (call, bool) {
		for _, t := range tools {
			if !shellName.MatchString(t.name) && !shellDescription.MatchString(t.description) {
				continue
			}
			for _, member := range []string{"command", "cmd"} {
				s, ok := t.schema.Properties[member]
				if !ok {
					continue
				}
				var value any = command
				if s.is("array") {
					value = []string{"bash", "-lc", command}
				}
				return t.call(map[string]any{member: value}), true
			}
		}
		return call{}, false
	}
}

// todoCall returns a function that calls a tool that keeps a list of todos. In the
// second call the first step is done.
func todoCall(second bool) func([]tool) (call, bool) {
	return func(tools []tool) (call, bool) {
		var fits []tool
		for _, t := range tools {
			if todoName.MatchString(t.name) && !todoReader.MatchString(t.name) {
				fits = append(fits, t)
			}
		}
		if len(fits) == 0 {
			return call{}, false
		}
		t := fits[0]
		if second { // some agents have one tool to make a step and one to change it
			t = fits[len(fits)-1]
		}
		return t.call(todoArgs(t, second)), true
	}
}

func todoArgs(t tool, second bool) map[string]any {
	statuses := [2]string{"in_progress", "pending"}
	if second {
		statuses = [2]string{"completed", "in_progress"}
	}
	for name, s := range t.schema.Properties {
		if !s.is("array") || s.Items == nil || len(s.Items.Properties) == 0 {
			continue
		}
		var list []any
		for i, what := range []string{"Write the file", "Report"} {
			list = append(list, fill(*s.Items, what, statuses[i], i))
		}
		return map[string]any{name: list}
	}
	return fill(t.schema, "Write the file", statuses[0], 0)
}

// fill returns a todo whose members follow from the names in the schema.
func fill(s schema, what, status string, i int) map[string]any {
	entry := map[string]any{}
	for name, member := range s.Properties {
		required := slices.Contains(s.Required, name)
		switch lower := strings.ToLower(name); {
		case lower == "status":
			entry[name] = status
		case lower == "priority" && required:
			entry[name] = "medium"
		case (lower == "id" || lower == "taskid") && required:
			entry[name] = string(rune('1' + i))
		case (lower == "content" || lower == "step" || lower == "subject" || lower == "title" || lower == "activeform" || lower == "description") && member.is("string"):
			entry[name] = what
		}
	}
	return entry
}

// example returns JSON that matches the schema. For an enum it has the first word.
func (s *schema) example() string {
	out := map[string]any{}
	for name, member := range s.Properties {
		switch {
		case len(member.Enum) > 0:
			out[name] = member.Enum[0]
		case member.is("string"):
			out[name] = "as the test says"
		case member.is("boolean"):
			out[name] = false
		case member.is("number") || member.is("integer"):
			out[name] = 1
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // never happens: the values were decoded from JSON
	}
	return string(b)
}

// call returns a call with these arguments. It adds a value for every required member
// that is missing.
func (t *tool) call(args map[string]any) call {
	for _, name := range t.schema.Required {
		s := t.schema.Properties[name]
		switch _, has := args[name]; {
		case has:
		case len(s.Enum) > 0:
			args[name] = s.Enum[0]
		case s.is("string"):
			args[name] = "as the test says"
		case s.is("boolean"):
			args[name] = false
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // never happens: args has only values that JSON can encode
	}
	return call{t.name, raw}
}
