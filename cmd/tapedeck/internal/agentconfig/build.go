package agentconfig

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/runner/a2a"
	"github.com/tapedeck/tapedeck/runner/acp"
	"github.com/tapedeck/tapedeck/runner/agui"
	"github.com/tapedeck/tapedeck/runner/llm"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
	"github.com/tapedeck/tapedeck/runner/script"
)

// A FolderFunc returns open, which opens the folder of an agent in a session. open is
// nil if the agent has no folder. cwd is the setting of the agent, nil if it has none;
// a relative path begins at base. choices are the absolute paths of the folders of which
// a session may choose one.
type FolderFunc func(cwd *string, choices []string, base string) (open func(session, chosen string) (string, error))

// Build returns the agents of the configuration, in its order.
func (c *Config) Build(folder FolderFunc) ([]deck.Agent, error) {
	var out []deck.Agent
	for i := range c.agents {
		a, err := c.agents[i].build(folder, filepath.Dir(c.Path), c)
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s: %s", c.agents[i].at, err).WithHint("%s", hintOf(err))
		}
		out = append(out, a)
	}
	return out, nil
}

// build returns the agent. If something is missing on this machine, the agent exists
// but cannot run.
func (a *agent) build(folder FolderFunc, base string, c *Config) (deck.Agent, error) {
	out := a.common()
	confined, err := a.confined(base, c.Secrets)
	if err != nil {
		return out, err
	}
	switch a.Kind {
	case "llm":
		out.Runner = a.llm(confined)
	case "a2a":
		env := environment{}
		out.Runner = env.guard(a2a.New(a2a.Options{Name: a.Name, URL: a.URL, Header: env.expand(a.Headers)}))
		return out, nil
	case "agui":
		env := environment{}
		out.Runner = env.guard(agui.New(agui.Options{Name: a.Name, URL: a.URL, Header: env.expand(a.Headers)}))
		return out, nil
	case "acp":
		out.Runner = a.acp(confined, base)
	case "process":
		r, err := a.process(confined, base)
		if err != nil {
			return out, err
		}
		out.Runner = r
	case "workflow":
		out.Runner, err = a.workflow(base)
		return out, err
	default:
		r := script.New(script.Options{Script: cmp.Or(a.Script, a.Name), Limits: c.ScriptLimits})
		out.Runner, out.Ready = r, r.Check
		return out, nil
	}
	if d, ok := out.Runner.(interface{ Describe() (string, string) }); ok && out.Description == "" {
		_, out.Description = d.Describe()
	}
	if len(a.Models) > 0 {
		out.Models = append([]string{a.Model}, slices.DeleteFunc(slices.Clone(a.Models), func(m string) bool { return m == a.Model })...)
	}
	if out.Folders, err = a.choices(base); err != nil {
		return out, err
	}
	out.Folder = folder(a.Cwd, out.Folders, base)
	out.Ready = a.ready(&out)
	return out, nil
}

// ready returns the check of what a run needs besides the runner: the folder that cwd names,
// and a program that can be in the folder of a new session. An agent with other folders to
// choose from can run in these.
func (a *agent) ready(built *deck.Agent) func() error {
	named := a.Cwd != nil && *a.Cwd != "session"
	switch {
	case len(built.Folders) > 0 || named && *a.Cwd == "":
		return nil
	case named:
		return func() error {
			_, err := built.Folder("", "")
			return err
		}
	case strings.ContainsRune(a.Command, filepath.Separator) && !filepath.IsAbs(a.Command):
		return func() error {
			return tapedeck.Errorf(tapedeck.Unavailable, "the program %s would begin in the folder of each session, which is empty at first", a.Command).
				WithHint("%s", a.namesProgram())
		}
	}
	return nil
}

// namedFolder returns the folder that cwd names, "" if it names none. A relative path begins
// at base.
func (a *agent) namedFolder(base string) string {
	switch {
	case a.Cwd == nil || *a.Cwd == "" || *a.Cwd == "session":
		return ""
	case filepath.IsAbs(*a.Cwd):
		return *a.Cwd
	}
	return filepath.Join(base, *a.Cwd)
}

// common returns the settings that all kinds of agents have.
func (a *agent) common() deck.Agent {
	out := deck.Agent{
		Name: a.Name, Kind: a.Kind, Description: a.Description,
		Starts: a.Starts,
	}
	for limit, set := range map[*time.Duration]*time.Duration{&out.RunTimeout: a.RunTimeout, &out.IdleTimeout: a.IdleTimeout} {
		if set != nil {
			*limit = *set
			if *set == 0 { // no limit; 0 in a deck.Agent is the default
				*limit = -1
			}
		}
	}
	if b := a.Budget; b != nil {
		out.Budget, out.StopAtLimit = b.amount(), b.AtLimit == "stop"
	}
	if a.KillAfter != nil {
		out.KillAfter = *a.KillAfter
	}
	return out
}

// choices returns the absolute paths of the folders of which a session may choose one.
func (a *agent) choices(base string) (out []string, err error) {
	for _, path := range a.Folders {
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

func (a *agent) llm(confined *sandbox.Policy) tapedeck.Runner {
	env := environment{}
	o := llm.Options{
		Name: a.Preset, BaseURL: a.URL, Model: a.Model, Models: a.Models, System: a.System, MaxTurns: a.MaxTurns,
		Header: env.expand(a.Headers), Prices: a.prices(), Policy: a.policy(), Files: tool.Options{Env: names(a.Env), Sandbox: confined},
	}
	if a.KeyEnv != "" {
		o.Key = env.get(a.KeyEnv)
	}
	for _, m := range a.MCP {
		s := mcp.Server{Name: m.Name, Env: names(m.Env), URL: m.URL, Headers: env.expand(m.Headers), Sandbox: confined}
		if m.Command != "" {
			s.Command = append([]string{m.Command}, m.Args...)
		}
		o.Servers = append(o.Servers, s)
	}
	for name, v := range a.Parameters {
		raw, _ := json.Marshal(v) // checkNumbers has done it
		if o.Parameters == nil {
			o.Parameters = map[string]json.RawMessage{}
		}
		o.Parameters[name] = raw
	}
	return env.guard(llm.New(o))
}

// policy returns the rules, the most specific first. A TOML table has no order.
func (a *agent) policy() (p llm.Policy) {
	for _, tool := range slices.SortedFunc(maps.Keys(a.Permissions), byPattern) {
		p = append(p, llm.Rule{Tool: tool, Decision: llm.Decision(a.Permissions[tool])})
	}
	return p
}

func (a *agent) prices() map[string]llm.Price {
	out := map[string]llm.Price{}
	for model, p := range a.Prices {
		out[model] = llm.Price{Input: p.Input, Output: p.Output, CachedInput: p.CachedInput, CacheWrite: p.CacheWrite}
	}
	return out
}

func (a *agent) acp(confined *sandbox.Policy, base string) tapedeck.Runner {
	env := environment{}
	o := acp.Options{Name: a.Name, Auth: a.Auth, Mode: a.Mode, Env: env.of(a.Env), Folder: a.namedFolder(base), Sandbox: confined}
	if a.Command != "" {
		o.Command = append([]string{a.Command}, a.Args...)
	}
	p, _ := acpPreset(a.Preset)
	o.Install = cmp.Or(p.Install, a.namesProgram())
	for _, m := range a.MCP {
		o.MCP = append(o.MCP, acpServer(&m, &env))
	}
	return env.guard(acp.New(o))
}

func acpPreset(name string) (acp.Preset, bool) {
	i := slices.IndexFunc(acp.Presets, func(p acp.Preset) bool { return p.Name == name })
	if i < 0 {
		return acp.Preset{}, false
	}
	return acp.Presets[i], true
}

func acpServer(m *mcpServer, env *environment) sdk.McpServer {
	if m.URL != "" {
		s := sdk.McpServerHttpInline{Name: m.Name, Type: "http", Url: m.URL, Headers: []sdk.HttpHeader{}}
		for name, v := range env.expand(m.Headers) {
			s.Headers = append(s.Headers, sdk.HttpHeader{Name: name, Value: v})
		}
		return sdk.McpServer{Http: &s}
	}
	s := sdk.McpServerStdio{Name: m.Name, Command: m.Command, Args: append([]string{}, m.Args...), Env: []sdk.EnvVariable{}}
	for _, pair := range env.of(m.Env) {
		name, v, _ := strings.Cut(pair, "=")
		s.Env = append(s.Env, sdk.EnvVariable{Name: name, Value: v})
	}
	return sdk.McpServer{Stdio: &s}
}

// always are variables that nearly every program needs.
var always = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// An environment reads the environment of this process and records missing variables.
type environment struct{ missing []string }

func (e *environment) get(name string) string {
	v, ok := os.LookupEnv(name)
	if !ok || v == "" {
		e.missing = append(e.missing, name)
	}
	return v
}

// of returns the environment of a program: pairs unchanged, and the named variables
// that exist.
func (e *environment) of(list []string) []string {
	var out []string
	for _, name := range append(slices.Clone(always), list...) {
		if strings.Contains(name, "=") {
			out = append(out, name)
		} else if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// expand replaces ${NAME} by the value of the variable.
func (e *environment) expand(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = os.Expand(v, e.get)
	}
	return out
}

// guard returns r, or a runner that cannot run if a variable is missing.
func (e *environment) guard(r runner.Capable) tapedeck.Runner {
	if len(e.missing) == 0 {
		return r
	}
	return unready{r, tapedeck.Errorf(tapedeck.Unavailable, "the environment variable %s is not set", strings.Join(e.missing, ", "))}
}

// An unready runner cannot run on this machine.
type unready struct {
	runner.Capable
	reason error
}

// Available returns the reason.
func (u unready) Available() error { return u.reason }

// names returns the entries of a list that are names of variables, without pairs.
func names(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return strings.Contains(s, "=") })
}

// applyPreset fills in the settings that the file leaves to the preset.
func (a *agent) applyPreset() error {
	if a.Preset == "" {
		return nil
	}
	if p, ok := providers[a.Preset]; ok && (a.Kind == "" || a.Kind == "llm") {
		a.Kind, a.URL, a.KeyEnv = "llm", cmp.Or(a.URL, p.url), cmp.Or(a.KeyEnv, p.key)
		return nil
	}
	if p, ok := acpPreset(a.Preset); ok && (a.Kind == "" || a.Kind == "acp") {
		a.Command, a.Args = cmp.Or(a.Command, p.Command[0]), append(slices.Clone(p.Command[1:]), a.Args...)
		a.Kind, a.Auth, a.Env = "acp", cmp.Or(a.Auth, p.Auth), append(slices.Clone(p.Env), a.Env...)
		return nil
	}
	if a.Kind == "process" {
		return a.applyProcessPreset()
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no preset %q of this kind", a.Preset).WithHint("the presets are %s", strings.Join(presets(), ", "))
}

// A provider serves models.
type provider struct{ url, key string }

// providers are the presets of kind llm.
var providers = map[string]provider{
	"openai":     {"https://api.openai.com/v1", "OPENAI_API_KEY"},
	"openrouter": {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	"ollama":     {"http://localhost:11434/v1", ""},
	"llamacpp":   {"http://localhost:8080/v1", ""},
	"vllm":       {"http://localhost:8000/v1", ""},
}

// presets returns the names of all presets except those of kind process.
func presets() []string {
	out := slices.Collect(maps.Keys(providers))
	for _, p := range acp.Presets {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}
