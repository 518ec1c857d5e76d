package agentconfig

import (
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/tomltype"
)

// checkTypes refuses a value of the wrong type, with the agent and the type that is right.
func checkTypes(path string, text []byte, file any) error {
	m := tomltype.Find(text, file)
	if m == nil {
		return nil
	}
	of := ""
	if name, _ := m.Entry["name"].(string); strings.HasPrefix(m.Setting, "agent.") && tapedeck.CheckID("the name", name) == nil {
		of = " of the agent " + name
	}
	e := tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s%s %s", path, m.Line(text), m.Setting, of, m)
	if m.Setting == "agent.command" {
		return e.WithHint(`command is the program alone, and args has its arguments: command = "my-agent", args = ["--acp"]`)
	}
	return e.WithHint("docs/agents/README.md lists all settings")
}
