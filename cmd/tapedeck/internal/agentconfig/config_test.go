package agentconfig

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/runner"
)

const goodConfig = `
# two agents
[[agent]]
name = "local"
preset = "ollama"
model = "qwen3"
models = ["qwen3", "qwen3-coder"]
folders = ["project", "/srv/web"]
run_timeout = "10m"
budget = { tokens = 50_000, usd = 0.5, turns = 20, time = "30m" }
permissions = { "*" = "ask", "git_*" = "deny", "git_log" = "allow", read = "allow" }
[agent.prices.qwen3]
input = 0.5
output = 1.5
[[agent.mcp]]
name = "files"
command = "mcp-files"

[[agent]]
name = "qwen"
preset = "qwen"
args = ["--yolo"]
env = ["EXTRA", "MODE=test"]
cwd = ""

[[agent]]
name = "claude"
kind = "process"
preset = "claude-print"
command = "/opt/claude"
args = ["--model", "opus"]

[[agent]]
name = "own"
kind = "process"
command = "own-agent"
args = ["--json", "--", "{task}"]
dialect = "lines"
[agent.mapping]
type = "/kind"
[agent.mapping.lines.text]
as = "text"
text = "/text"
`

// someFolder knows one folder, unless an agent wants none.
func someFolder(cwd *string, _ []string, _ string) func(string, string) (string, error) {
	if cwd != nil && *cwd == "" {
		return nil
	}
	return func(string, string) (string, error) { return "/work", nil }
}

func TestConfig(t *testing.T) {
	c, err := parse("/etc/tapedeck.toml", []byte(goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	agents, err := c.Build(someFolder)
	if err != nil || len(agents) != 4 {
		t.Fatalf("%v, %v", agents, err)
	}
	if a := agents[0]; a.Kind != "llm" || a.RunTimeout.Minutes() != 10 || a.Budget.Tokens != 50_000 || a.Budget.USD != 0.5 || a.Budget.Turns != 20 || a.Budget.Seconds != 1800 || a.Folder == nil || !strings.Contains(a.Description, "qwen3") {
		t.Errorf("got %+v", a)
	}
	if a := agents[0]; !slices.Equal(a.Models, []string{"qwen3", "qwen3-coder"}) || !slices.Equal(a.Folders, []string{"/etc/project", "/srv/web"}) {
		t.Errorf("it offers %q and %q", a.Models, a.Folders)
	}
	if a := agents[1]; a.Models != nil || a.Folders != nil || a.Kind != "acp" || a.Folder != nil {
		t.Errorf("got %+v", a)
	}
	if got := c.agents[2].adapt([]string{"claude", "-p", "--", "{task}"}); !slices.Equal(got, []string{"/opt/claude", "-p", "--model", "opus", "--", "{task}"}) {
		t.Errorf("the command is %q", got)
	}
	if got := c.agents[3].Mapping.Lines["text"]; got.As != "text" || got.Text != "/text" {
		t.Errorf("the mapping is %+v", got)
	}
	var rules []string
	for _, r := range c.agents[0].policy() {
		rules = append(rules, r.Tool)
	}
	if want := []string{"git_log", "read", "git_*", "*"}; !slices.Equal(rules, want) {
		t.Errorf("the rules are %q", rules)
	}
	if q := c.agents[1]; q.Command != "qwen" || !slices.Equal(q.Args, []string{"--acp", "--yolo"}) || !slices.Contains(q.Env, "OPENAI_API_KEY") || !slices.Contains(q.Env, "MODE=test") {
		t.Errorf("got %+v", q)
	}
}

func TestConfigErrors(t *testing.T) {
	const secret = "s3cr3t"
	for text, want := range map[string]string{
		"[[agent]]\nname = \"a\"\nkind = \"llm\"\nsecret_key = \"s3cr3t\"\n":                              `x.toml:4: there is no setting "agent.secret_key"`,
		"[[agent]]\nname = \"a\"\nkind = \"llm\"\n[[agent]]\nname = \"b\"\nkind = \"llm\"\n[agent.mcp]\n": "x.toml:7",
		"[[agent]]\nname = \"a\"\nkind = \"llm\"\nprices = { m = { inputs = 1 } }\n":                      `x.toml:4: there is no setting "agent.prices.m.inputs"`,
		"color = true\n":                           `x.toml:1: there is no setting "color"`,
		"[[agent]]\nname = s3cr3t\n":               "x.toml:2",
		"[[agent]]\nname = \"a\"\nmodel = 5\n":     "x.toml:3: agent.model of the agent a takes a text in quotes, not a number",
		"[[agent]]\nkind = \"llm\"\n":              "x.toml:1: the agent has no name",
		"\n[[agent]]\nname = \"a b\"\n":            "x.toml:2: the agent's name",
		"[[agent]]\nname = \"a\"\n":                "no known kind",
		"[[agent]]\nname=\"a\"\nkind=\"robot\"\n":  "no known kind",
		"[[agent]]\nname=\"a\"\npreset=\"nope\"\n": `there is no preset "nope"`,
		"[[agent]]\nname=\"a\"\nkind=\"script\"\n[[agent]]\nname=\"a\"\nkind=\"script\"\n":                     "x.toml:4: two agents have the name",
		"[[agent]]\nname=\"a\"\nkind=\"script\"\nurl=\"http://s3cr3t@h\"\n":                                    "url is not a setting of an agent of kind script",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\npermissions={x=\"s3cr3t\"}\n":                                    "is unknown",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nenv=[\"K=s3cr3t\"]\n":                                            "names of variables only",
		"[[agent]]\nname=\"a\"\nkind=\"acp\"\ncommand=\"c\"\nenv=[\"TAPEDECK_URL\"]\n":                         "no agent gets those",
		"[[agent]]\nname=\"a\"\nkind=\"acp\"\ncommand=\"c\"\nenv=[\"=s3cr3t\"]\n":                              "without a name",
		"[[agent]]\nname=\"a\"\nkind=\"a2a\"\n":                                                                "has no url that begins with http:// or https://",
		"[[agent]]\nname=\"a\"\nkind=\"a2a\"\nurl=\"s3cr3t\"\n":                                                "has no url that begins with http:// or https://",
		"[[agent]]\nname=\"a\"\nkind=\"a2a\"\nurl=\"http://h\"\ncwd=\"s3cr3t\"\n":                              "cwd is not a setting of an agent of kind a2a",
		"[[agent]]\nname=\"a\"\nkind=\"agui\"\nurl=\"s3cr3t\"\n":                                               "kind agui, has no url that begins with http:// or https://",
		"[[agent]]\nname=\"a\"\nkind=\"agui\"\nurl=\"http://h\"\nmodel=\"s3cr3t\"\n":                           "model is not a setting of an agent of kind agui",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nbudget={}\n":                                                     "has no limit above 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nbudget={usd=nan}\n":                                              "has no limit above 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nbudget={turns=-1,tokens=1}\n":                                    "has no limit above 0",
		"[[agent]]\nname=\"a\"\nkind=\"script\"\nbudget={turns=1}\n":                                           "budget is not a setting of an agent of kind script",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nstarts=[\"b\"]\n":                                                `x.toml:1: a may start the agent "b"`,
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"s3cr3t\"\n":                                            "has an unknown sandbox",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nconfine={network=true}\n":                                        "it would run unconfined",
		"[[agent]]\nname=\"a\"\nkind=\"script\"\nsandbox=\"bubblewrap\"\n":                                     "sandbox is not a setting of an agent of kind script",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"bubblewrap\"\nconfine={net=true}\n":                    `there is no setting "agent.confine.net"`,
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"bubblewrap\"\nconfine={memory=\"4\u00a0elephants\"}\n": "is no size",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"bubblewrap\"\nconfine={time=\"-1s\"}\n":                "a limit below 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"bubblewrap\"\nconfine={readable=[\"/\"]}\n":            "would show everything",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nsandbox=\"bubblewrap\"\nconfine={env=[\"K=s3cr3t\"]}\n":          "takes names of variables",
		"[[agent]]\nname=\"a\"\nkind=\"acp\"\ncommand=\"c\"\ncwd=\"\"\nsandbox=\"bubblewrap\"\n":               "has a sandbox, but no folder",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nrun_timeout=\"s3cr3t\"\n":                                        "x.toml:4",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\n[[agent.mcp]]\nname=\"m\"\n":                                     "either a command or a url",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\n":                                                           "needs either a file or a workflow",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"s3cr3t\"\nworkflow=\"w\"\n":                          "needs either a file or a workflow",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"f\"\nmodel=\"s3cr3t\"\n":                             "model is not a setting of an agent of kind workflow",
		"[[agent]]\nname=\"a\"\nkind=\"script\"\nfile=\"s3cr3t\"\n":                                            "file is not a setting of an agent of kind script",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"f\"\nvariables={task=\"s3cr3t\"}\n":                  "gets the text of the task",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"f\"\nagents={T=\"a\"}\n":                             "would go to the agent itself",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"f\"\nstarts=[\"a\"]\nagents={T=\"b\"}\n":             "which starts does not name",
		"[[agent]]\nname = \"a\"\npreset = \"ollama\"\nmodels = [\"m\"]\n":                                     "but no model",
		"[[agent]]\nname = \"a\"\npreset = \"ollama\"\nfolders = [\"\"]\n":                                     "1 to 512 bytes",
		"[[agent]]\nname = \"a\"\nkind = \"script\"\nfolders = [\"x\"]\n":                                      "folders is not a setting",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nmax_turns=-1\n":                                                  "x.toml:1: max_turns of the agent a is below 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nrun_timeout=\"-1s\"\n":                                           "run_timeout of the agent a is below 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nidle_timeout=\"-1m\"\n":                                          "idle_timeout of the agent a is below 0",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nprices={m={input=-1}}\n":                                         "the prices of the model \"m\"",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nprices={m={input=1, cached_input=nan}}\n":                        "the prices of the model \"m\"",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nprices={m={input=1, cache_write=inf}}\n":                         "the prices of the model \"m\"",
		"[[agent]]\nname=\"a\"\nkind=\"llm\"\nparameters={temperature=nan}\n":                                  "\"temperature\" of the agent a has a value that JSON does not have",
		"[[agent]]\nname=\"a\"\nkind=\"workflow\"\nfile=\"f\"\nvariables={v=[inf]}\n":                          "\"v\" of the agent a has a value that JSON does not have",
	} {
		_, err := parse("x.toml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error()+hintOf(err), secret) {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
	}
}

func TestAgentsHint(t *testing.T) {
	for text, want := range map[string]string{
		"[[agents]]\nname = \"a\"\n": "each agent begins with [[agent]]",
		"colour = 1\n":               "docs/agents/README.md lists all settings",
	} {
		if _, err := parse("x.toml", []byte(text)); err == nil || hintOf(err) != want {
			t.Errorf("%s: got %v, %q", text, err, hintOf(err))
		}
	}
}

// What only the runner knows of an agent is an error with a line, too.
func TestBuildErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\n[[agent]]\nname=\"a\"\nkind=\"process\"\ncommand=\"c\"\ndialect=\"nope\"\n":    "x.toml:2: the agent a: ",
		"\n\n[[agent]]\nname=\"a\"\nkind=\"process\"\ncommand=\"c\"\ndialect=\"lines\"\n": "x.toml:3: the agent a: ",
	} {
		c, err := parse("x.toml", []byte(text))
		if err == nil {
			_, err = c.Build(someFolder)
		}
		if err == nil || !strings.Contains(err.Error(), want) || tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%s\ngot %v, want %s", text, err, want)
		}
	}
}

// An agent names the variables that are missing on this machine, without values.
func TestUnready(t *testing.T) {
	t.Setenv("DECK_TEST_KEY", "")
	a := agent{Name: "a", Kind: "llm", URL: "http://h/v1", Model: "m", KeyEnv: "DECK_TEST_KEY", Headers: map[string]string{"X": "${DECK_TEST_OTHER}"}}
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, Agents: build(t, a)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	if got := d.Agents()[0].Unavailable; !strings.Contains(got, "DECK_TEST_KEY") || !strings.Contains(got, "DECK_TEST_OTHER") {
		t.Errorf("got %q", got)
	}
}

func build(t *testing.T, a agent) []deck.Agent {
	t.Helper()
	out, err := a.build(someFolder, "", &Config{})
	if err != nil {
		t.Fatal(err)
	}
	return []deck.Agent{out}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("DECK_TEST_SECRET", "x")
	t.Setenv("DECK_TEST_GIVEN", "y")
	env := environment{}
	got := env.of([]string{"DECK_TEST_GIVEN", "PAIR=z", "DECK_TEST_ABSENT"})
	for want, ok := range map[string]bool{"DECK_TEST_GIVEN=y": true, "PAIR=z": true, "DECK_TEST_SECRET=x": false} {
		if slices.Contains(got, want) != ok {
			t.Errorf("%s: %q", want, got)
		}
	}
}

// The examples in the documents are valid.
func TestConfigOfTheDocs(t *testing.T) {
	files, _ := filepath.Glob("../../../../docs/agents/*.md")
	n := 0
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
			n++
			text := m[1]
			if !strings.HasPrefix(text, "[[agent]]") { // a part of an agent
				text = "[[agent]]\nname = \"a\"\nkind = \"llm\"\n" + text
			}
			c, err := parse(file, []byte(text))
			if err == nil {
				_, err = c.Build(someFolder)
			}
			if err != nil {
				t.Errorf("%s%v", m[1], err)
			}
		}
	}
	if n < 5 {
		t.Errorf("there are %d examples", n)
	}
}

// An agent of another server gets its headers with the values of variables, and cannot
// run without one of them.
func TestRemoteAgents(t *testing.T) {
	t.Setenv("DECK_TEST_TOKEN", "secret")
	for _, kind := range []string{"a2a", "agui"} {
		for variable, want := range map[string]string{"DECK_TEST_TOKEN": "", "DECK_TEST_NONE": "the environment variable DECK_TEST_NONE is not set"} {
			c, err := parse("x.toml", []byte(`[[agent]]
name = "far"
kind = "`+kind+`"
url = "http://agents.example/run"
headers = { Authorization = "Bearer ${`+variable+`}" }`))
			if err != nil {
				t.Fatal(err)
			}
			agents, err := c.Build(someFolder)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if err := agents[0].Runner.(runner.Capable).Available(); err != nil {
				reason = err.Error()
			}
			if agents[0].Kind != kind || agents[0].Folder != nil || reason != want {
				t.Errorf("%s: got %+v, %q", kind, agents[0], reason)
			}
		}
	}
}
