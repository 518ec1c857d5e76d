package agentconfig

import (
	"bytes"
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
	of, begin := "", 0
	if strings.HasPrefix(m.Setting, "agent.") {
		begin = lineOfAgent(text, m.Index) - 1
		if name, _ := m.Entry["name"].(string); tapedeck.CheckID("the name", name) == nil {
			of = " of the agent " + name
		}
	}
	rest := bytes.Join(bytes.SplitAfter(text, []byte("\n"))[begin:], nil)
	line := begin + max(1, lineOf(rest, strings.Split(m.Setting, ".")))
	e := tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s%s %s", path, line, m.Setting, of, m)
	if m.Setting == "agent.command" {
		return e.WithHint(`command is the program alone, and args has its arguments: command = "my-agent", args = ["--acp"]`)
	}
	return e.WithHint("docs/agents/README.md lists all settings")
}
