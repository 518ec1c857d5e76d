package agentconfig

import (
	"reflect"
	"strings"
	"testing"
)

// TestWrongTypes: a value of the wrong type is refused with its line, its agent, its setting and
// the type that is right.
func TestWrongTypes(t *testing.T) {
	for _, c := range []struct{ setting, want, hint string }{
		{`command = ["my-agent", "--acp"]`, `x.toml:4: agent.command of the agent a takes a text in quotes, not a list`, `command = "my-agent", args = ["--acp"]`},
		{`command = 5`, `agent.command of the agent a takes a text in quotes, not a number`, "command is the program alone"},
		{`args = "--acp"`, `agent.args of the agent a takes a list of texts such as ["a", "b"], not a text`, ""},
		{`args = ["--acp", 5]`, `agent.args of the agent a takes a text in quotes, not a number`, ""},
		{`url = true`, `agent.url of the agent a takes a text in quotes, not true`, ""},
		{`max_turns = "5"`, `agent.max_turns of the agent a takes a whole number, not a text`, ""},
		{`max_turns = 1.5`, `agent.max_turns of the agent a takes a whole number, not a number with a fraction`, ""},
		{`run_timeout = 5`, `agent.run_timeout of the agent a takes a duration such as "90s" or "10m", not a number`, ""},
		{`run_timeout = "s3cr3t"`, `agent.run_timeout of the agent a takes a duration such as "90s" or "10m", not this text`, ""},
		{`headers = ["X: y"]`, `agent.headers of the agent a takes a table such as { name = "value" }, not a list`, ""},
		{`headers = { X = 5 }`, `agent.headers.X of the agent a takes a text in quotes, not a number`, ""},
		{`prices = { m = { input = "1" } }`, `agent.prices.m.input of the agent a takes a number, not a text`, ""},
		{`prices = { m = 1 }`, `agent.prices.m of the agent a takes a table, not a number`, ""},
		{`budget = 5`, `agent.budget of the agent a takes a table, not a number`, ""},
		{`budget = { usd = "5" }`, `agent.budget.usd of the agent a takes a number, not a text`, ""},
		{`permissions = "allow"`, `agent.permissions of the agent a takes a table such as { name = "value" }, not a text`, ""},
		{`confine = { network = "yes" }`, `agent.confine.network of the agent a takes true or false, not a text`, ""},
		{`mcp = "server"`, `agent.mcp of the agent a takes tables such as [[agent.mcp]], not a text`, ""},
		{`model = 2026-01-01T00:00:00Z`, `agent.model of the agent a takes a text in quotes, not a time`, ""},
	} {
		_, err := parse("x.toml", []byte("[[agent]]\nname = \"a\"\nkind = \"acp\"\n"+c.setting+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "x.toml:4: ") || !strings.HasSuffix(err.Error(), strings.TrimPrefix(c.want, "x.toml:4: ")) || !strings.Contains(hintOf(err), c.hint) {
			t.Errorf("%s\ngot  %v\nhint %s\nwant %s", c.setting, err, hintOf(err), c.want)
		}
	}
	for text, want := range map[string]string{
		"agent = 5\n":                           "x.toml:1: agent takes tables such as [[agent]], not a number",
		"[agent]\nname = \"a\"\n":               "agent takes tables such as [[agent]], not a table",
		"[[agent]]\nname = 5\n":                 "x.toml:2: agent.name takes a text in quotes, not a number",
		"[[agent]]\nname = \"a b\"\nkind = 5\n": "x.toml:3: agent.kind takes a text in quotes, not a number",
		"[[agent]]\nname = \"a\"\nkind = \"llm\"\nmodel = \"m\"\n[[agent]]\nname = \"b\"\nkind = \"llm\"\nmodel = 5\n": "x.toml:8: agent.model of the agent b takes a text in quotes, not a number",
		"[retention]\nmax_age = 90\n":    "x.toml:2: retention.max_age takes a text in quotes, not a number",
		"[budgets.owner.ada]\nday = 5\n": "x.toml:2: budgets.owner.ada.day takes a table, not a number",
	} {
		if _, err := parse("x.toml", []byte(text)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestEverySettingHasAType: for each setting, a value of another type is refused by its name.
func TestEverySettingHasAType(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[agent]()) {
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		wrong := "[1979-05-27]" // no setting takes a list of dates
		if _, err := parse("x.toml", []byte("[[agent]]\nname = \"a\"\nkind = \"llm\"\n"+name+" = "+wrong+"\n")); (name != "name" && name != "kind") && (err == nil || !strings.Contains(err.Error(), "agent."+name+" of the agent a takes ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
