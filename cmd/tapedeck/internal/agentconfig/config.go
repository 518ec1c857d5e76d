// Package agentconfig reads the configuration of agents, the file tapedeck.toml,
// and builds the agents that it describes.
package agentconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/tomltype"
	"github.com/tapedeck/tapedeck/runner/process"
	"github.com/tapedeck/tapedeck/runner/script"
)

// FileName is the name of a configuration file.
const FileName = "tapedeck.toml"

// maxSize is the size of the largest configuration file, in bytes.
const maxSize = 1 << 20

// A Config is the content of a configuration file. The zero value has no agents.
type Config struct {
	Path string // of the file

	ScriptLimits script.Limits // of each run of an agent of kind script; not in the file
	Secrets      Secrets       // what confined agents may not see; not in the file

	agents    []agent
	budgets   budgets
	retention retention
}

// An agent is the configuration of one agent. docs/agents/README.md describes the
// settings.
type agent struct {
	at string // the file and the line where it begins, for errors

	Name        string   `toml:"name"`
	Kind        string   `toml:"kind"`
	Preset      string   `toml:"preset"`
	Description string   `toml:"description"`
	Command     string   `toml:"command"`
	Args        []string `toml:"args"`
	Resume      []string `toml:"resume"`

	Dialect string           `toml:"dialect"`
	Mapping *process.Mapping `toml:"mapping"`

	URL        string            `toml:"url"`
	KeyEnv     string            `toml:"key_env"`
	Model      string            `toml:"model"`
	Models     []string          `toml:"models"`
	System     string            `toml:"system"`
	MaxTurns   int               `toml:"max_turns"`
	Headers    map[string]string `toml:"headers"`
	Parameters map[string]any    `toml:"parameters"`
	Prices     map[string]price  `toml:"prices"`

	Env         []string          `toml:"env"`
	Cwd         *string           `toml:"cwd"`
	Folders     []string          `toml:"folders"`
	Permissions map[string]string `toml:"permissions"`
	Starts      []string          `toml:"starts"`
	RunTimeout  *time.Duration    `toml:"run_timeout"`
	IdleTimeout *time.Duration    `toml:"idle_timeout"`
	KillAfter   *time.Duration    `toml:"kill_after"`
	Budget      *budget           `toml:"budget"`
	Sandbox     string            `toml:"sandbox"`
	Confine     *confine          `toml:"confine"`
	MCP         []mcpServer       `toml:"mcp"`

	Auth   string `toml:"auth"`
	Mode   string `toml:"mode"`
	Script string `toml:"script"`

	File         string            `toml:"file"`
	Workflow     string            `toml:"workflow"`
	Process      string            `toml:"process"`
	Variables    map[string]any    `toml:"variables"`
	TaskVariable string            `toml:"task_variable"`
	Agents       map[string]string `toml:"agents"`
}

// maxPrice is the highest price: the cost of a run stays a number.
const maxPrice = 1e9

// A price is the price of a million tokens, in US dollars.
type price struct {
	Input       float64  `toml:"input"`
	Output      float64  `toml:"output"`
	CachedInput *float64 `toml:"cached_input"`
	CacheWrite  *float64 `toml:"cache_write"`
}

// A budget is what a run may use; 0 is no limit.
type budget struct {
	Tokens  int64         `toml:"tokens"`
	USD     float64       `toml:"usd"`
	Turns   int64         `toml:"turns"`
	Time    time.Duration `toml:"time"`
	AtLimit string        `toml:"at_limit"` // "ask" (the default) or "stop"
}

func (b *budget) amount() tapedeck.Amount {
	return tapedeck.Amount{Tokens: b.Tokens, USD: b.USD, Turns: b.Turns, Seconds: b.Time.Seconds()}
}

// check checks a budget, which an error names as what.
func (b *budget) check(what string) error {
	if b == nil {
		return nil
	}
	if a := b.amount(); a == (tapedeck.Amount{}) || a.Check(what) != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "%s has no limit above 0", what).
			WithHint("it takes tokens, usd, turns and time; leave out what has no limit")
	}
	if b.AtLimit != "" && b.AtLimit != "ask" && b.AtLimit != "stop" {
		return tapedeck.Errorf(tapedeck.Invalid, "at_limit of %s is neither ask nor stop", what)
	}
	return nil
}

// An mcpServer is an MCP server whose tools an agent can call.
type mcpServer struct {
	Name    string            `toml:"name"`
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     []string          `toml:"env"`
	URL     string            `toml:"url"`
	Headers map[string]string `toml:"headers"`
}

// Read reads and checks a configuration file.
func Read(path string) (Config, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxSize {
		err = fmt.Errorf("%s has %d bytes", path, info.Size())
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return Config{}, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return parse(path, text)
}

// parse reads the text of a file. Errors name the line, but never a value, which may
// be a secret.
func parse(path string, text []byte) (Config, error) {
	c := Config{Path: path}
	var file struct {
		Agents    []agent   `toml:"agent"`
		Budgets   budgets   `toml:"budgets"`
		Retention retention `toml:"retention"`
	}
	if err := checkTypes(path, text, &file); err != nil {
		return c, err
	}
	md, err := toml.Decode(string(text), &file)
	c.agents, c.budgets, c.retention = file.Agents, file.Budgets, file.Retention
	var syntax toml.ParseError
	switch {
	case errors.As(err, &syntax):
		return c, tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s", path, syntax.Position.Line, reason(&syntax))
	case err != nil:
		return c, tapedeck.Errorf(tapedeck.Invalid, "%s has a value that its setting cannot have", path).Because(err)
	}
	if unknown := slices.DeleteFunc(md.Undecoded(), inAny); len(unknown) > 0 {
		return c, tapedeck.Errorf(tapedeck.Invalid, "%s:%d: there is no setting %q", path, tomltype.LineOf(text, unknown[0]), strings.Join(unknown[0], ".")).
			WithHint("%s", unknownHint(unknown[0]))
	}
	for _, check := range []func() error{c.budgets.check, c.retention.check} {
		if err := check(); err != nil {
			var m *misplaced
			errors.As(err, &m)
			return c, tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s", path, tomltype.LineOf(text, m.key), err).WithHint("%s", hintOf(err))
		}
	}
	seen := map[string]bool{}
	for i := range c.agents {
		a := &c.agents[i]
		a.at = fmt.Sprintf("%s:%d", path, tomltype.LineOfEntry(text, "agent", i))
		if err := a.check(seen); err != nil {
			return c, tapedeck.Errorf(tapedeck.Invalid, "%s: %s", a.at, err).WithHint("%s", hintOf(err))
		}
	}
	for i := range c.agents {
		for _, name := range c.agents[i].Starts {
			if !seen[name] {
				return c, tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s may start the agent %q, which is not configured", path, tomltype.LineOfEntry(text, "agent", i), c.agents[i].Name, name)
			}
		}
	}
	return c, nil
}

// unknownHint says what to write in place of a setting that does not exist.
func unknownHint(key toml.Key) string {
	if key[0] == "agents" {
		return "each agent begins with [[agent]]"
	}
	return "docs/agents/README.md lists all settings"
}

// A misplaced is an error of a setting that is in no list of tables.
type misplaced struct {
	key toml.Key
	error
}

func (m *misplaced) Unwrap() error { return m.error }

// within returns err as one of the setting that key leads to, nil for nil.
func within(err error, key ...string) error {
	var m *misplaced
	switch {
	case err == nil:
		return nil
	case errors.As(err, &m):
		return &misplaced{slices.Concat(key, m.key), m.error}
	}
	return &misplaced{key, err}
}

// inAny reports whether a key is inside of a setting that may have any content. The parser
// calls keys of tables in its lists undecoded, although it has decoded them.
func inAny(key toml.Key) bool {
	return len(key) > 2 && key[0] == "agent" && (key[1] == "variables" || key[1] == "parameters")
}

// reason returns the message of a syntax error without the value.
func reason(e *toml.ParseError) string {
	message, _, _ := strings.Cut(e.Message, ": ")
	if e.LastKey == "" {
		return message
	}
	return e.LastKey + ": " + message
}

func hintOf(err error) string {
	var e *tapedeck.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// kinds are the kinds of agents.
var kinds = []string{"a2a", "acp", "agui", "llm", "process", "script", "workflow"}

// check checks the settings without building the agent, and fills in those that the
// preset has.
func (a *agent) check(seen map[string]bool) error {
	if a.Name == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent has no name").WithHint(`give it one: name = "coder"`)
	}
	if err := tapedeck.CheckID("the agent's name", a.Name); err != nil {
		return err
	}
	if seen[a.Name] {
		return tapedeck.Errorf(tapedeck.Invalid, "two agents have the name %s", a.Name)
	}
	seen[a.Name] = true
	if err := a.applyPreset(); err != nil {
		return err
	}
	if err := a.checkNumbers(); err != nil {
		return err
	}
	if !slices.Contains(kinds, a.Kind) {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has no known kind: %q", a.Name, a.Kind).WithHint("the kinds are %s", strings.Join(kinds, ", "))
	}
	if a.Kind == "acp" && a.Command == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s, of kind acp, has no command", a.Name).WithHint("set command to the program of the agent, and args to its arguments")
	}
	if err := a.checkLists(); err != nil {
		return err
	}
	if err := a.checkURL(); err != nil {
		return err
	}
	if err := a.checkWorkflow(); err != nil {
		return err
	}
	if err := a.checkUnused(); err != nil {
		return err
	}
	return a.checkSandbox()
}

// checkNumbers refuses numbers that mean nothing.
func (a *agent) checkNumbers() error {
	if a.KillAfter != nil && *a.KillAfter <= 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "kill_after of the agent %s must be above 0", a.Name)
	}
	if a.MaxTurns < 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "max_turns of the agent %s is below 0", a.Name).WithHint("leave it out for 50")
	}
	for _, t := range []struct {
		name  string
		limit *time.Duration
	}{{"run_timeout", a.RunTimeout}, {"idle_timeout", a.IdleTimeout}} {
		if t.limit != nil && *t.limit < 0 {
			return tapedeck.Errorf(tapedeck.Invalid, "%s of the agent %s is below 0", t.name, a.Name).WithHint(`"0s" is no limit`)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(a.Prices)) {
		p := a.Prices[model]
		for _, v := range []*float64{&p.Input, &p.Output, p.CachedInput, p.CacheWrite} {
			if v != nil && !(*v >= 0 && *v <= maxPrice) { // also if it is no number
				return tapedeck.Errorf(tapedeck.Invalid, "the prices of the model %.100q of the agent %s are not all numbers from 0 to %d", model, a.Name, int(maxPrice))
			}
		}
	}
	for _, table := range []map[string]any{a.Parameters, a.Variables} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if _, err := json.Marshal(table[name]); err != nil {
				return tapedeck.Errorf(tapedeck.Invalid, "%.100q of the agent %s has a value that JSON does not have, such as nan", name, a.Name)
			}
		}
	}
	return nil
}

func (a *agent) checkLists() error {
	for tool, d := range a.Permissions {
		if !slices.Contains([]string{"allow", "ask", "deny"}, d) {
			return tapedeck.Errorf(tapedeck.Invalid, "the permission of %q is unknown", tool).WithHint("it can be allow, ask or deny")
		}
	}
	for _, list := range append([][]string{a.Env}, envsOf(a.MCP)...) {
		for _, v := range list {
			if a.Kind == "llm" && strings.Contains(v, "=") {
				return tapedeck.Errorf(tapedeck.Invalid, "env of the agent %s, of kind llm, takes names of variables only", a.Name)
			}
			if strings.HasPrefix(v, procgroup.OwnPrefix) {
				return tapedeck.Errorf(tapedeck.Invalid, "env of the agent %s names a variable that begins with %s; no agent gets those", a.Name, procgroup.OwnPrefix)
			}
			if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsAny(name, " \x00") {
				return tapedeck.Errorf(tapedeck.Invalid, "env of the agent %s has an entry without a name", a.Name).
					WithHint(`it takes names of variables to pass on, and pairs such as "NAME=value"`)
			}
		}
	}
	if err := a.Budget.check("the budget of the agent " + a.Name); err != nil {
		return err
	}
	if len(a.Models) > 0 && a.Model == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has models to choose from, but no model", a.Name).WithHint("set model to the one that it uses unless a task chooses another")
	}
	for _, v := range slices.Concat(a.Models, a.Folders) {
		if v == "" || tapedeck.CheckName("it", v) != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "models and folders of the agent %s take texts of 1 to 512 bytes", a.Name)
		}
	}
	for _, m := range a.MCP {
		if m.Name == "" || (m.Command == "") == (m.URL == "") {
			return tapedeck.Errorf(tapedeck.Invalid, "an MCP server of the agent %s needs a name, and either a command or a url", a.Name)
		}
	}
	return nil
}

// checkURL refuses an agent of another server without the URL of that agent.
func (a *agent) checkURL() error {
	hint := map[string]string{
		"a2a":  "set url to that of the agent; its card is at .well-known/agent-card.json below it",
		"agui": "set url to that to which a front end sends its runs",
	}[a.Kind]
	if hint == "" {
		return nil
	}
	if u, err := url.Parse(a.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s, of kind %s, has no url that begins with http:// or https://", a.Name, a.Kind).
			WithHint("%s", hint)
	}
	return nil
}

func envsOf(servers []mcpServer) (out [][]string) {
	for _, m := range servers {
		out = append(out, m.Env)
	}
	return out
}

// checkUnused refuses settings that have no effect for the kind of the agent.
func (a *agent) checkUnused() error {
	llm, remote, program := a.Kind == "llm", a.Kind == "a2a" || a.Kind == "agui", a.Kind == "acp" || a.Kind == "process"
	flow := a.Kind == "workflow"
	for _, s := range []struct {
		name string
		set  bool
		ok   bool
	}{
		{"command", a.Command != "", program}, {"args", a.Args != nil, program},
		{"url", a.URL != "", llm || remote}, {"key_env", a.KeyEnv != "", llm}, {"headers", a.Headers != nil, llm || remote},
		{"model", a.Model != "", llm}, {"system", a.System != "", llm},
		{"max_turns", a.MaxTurns != 0, llm}, {"parameters", a.Parameters != nil, llm}, {"prices", a.Prices != nil, llm},
		{"permissions", a.Permissions != nil, llm}, {"starts", a.Starts != nil, llm || flow}, {"mcp", a.MCP != nil, llm || a.Kind == "acp"},
		{"env", a.Env != nil, llm || program}, {"auth", a.Auth != "", a.Kind == "acp"}, {"mode", a.Mode != "", a.Kind == "acp"},
		{"resume", a.Resume != nil, a.Kind == "process"}, {"dialect", a.Dialect != "", a.Kind == "process"}, {"mapping", a.Mapping != nil, a.Kind == "process"},
		{"script", a.Script != "", a.Kind == "script"}, {"cwd", a.Cwd != nil, llm || program}, {"budget", a.Budget != nil, llm || program},
		{"sandbox", a.Sandbox != "", llm || program}, {"confine", a.Confine != nil, llm || program},
		{"models", a.Models != nil, llm}, {"folders", a.Folders != nil, llm || program},
		{"file", a.File != "", flow}, {"workflow", a.Workflow != "", flow}, {"process", a.Process != "", flow},
		{"variables", a.Variables != nil, flow}, {"task_variable", a.TaskVariable != "", flow}, {"agents", a.Agents != nil, flow},
	} {
		if s.set && !s.ok {
			return tapedeck.Errorf(tapedeck.Invalid, "%s is not a setting of an agent of kind %s", s.name, a.Kind)
		}
	}
	return nil
}

// byPattern orders the patterns of permissions: a name before a pattern, and a longer
// pattern, which is more specific, before a shorter one.
func byPattern(a, b string) int {
	star := func(s string) int { return min(1, strings.Count(s, "*")) }
	return cmp.Or(cmp.Compare(star(a), star(b)), cmp.Compare(len(b), len(a)), strings.Compare(a, b))
}
