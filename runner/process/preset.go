package process

// A Preset is the configuration of a well-known program. Its fields are those of
// [Options], but for Env.
type Preset struct {
	Name            string
	Dialect         string
	Command, Resume []string
	Env             []string // names of variables that it gets from our environment, and pairs NAME=value that it needs
	Install         string
}

// base returns the variables that almost every program needs, and more.
func base(more ...string) []string {
	return append([]string{"PATH", "HOME", "LANG", "TMPDIR"}, more...)
}

var (
	claudeEnv = base("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR")
	claudeArg = []string{"claude", "-p", "--output-format", "stream-json", "--include-partial-messages", "--verbose"}
	talkArg   = []string{"--input-format", "stream-json", "--permission-prompt-tool", "stdio", acknowledges}
	qwenArg   = []string{"qwen", "--output-format", "stream-json", "--include-partial-messages"}
	geminiArg = []string{"gemini", "-o", "stream-json"}
	resumeArg = []string{"--resume", "{session}"}
	// Without a terminal Gemini cannot ask whether to trust the folder, and would exit.
	geminiTrust = "GEMINI_CLI_TRUST_WORKSPACE=true"

	lastArg   = []string{"--", "{task}"} // after "--" the program accepts no options
	promptArg = []string{"--prompt={task}"}
)

// args joins lists of arguments into a new one.
func args(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// Presets are the programs that were tried, sorted by name. No preset permits an
// action that the program would ask for; a user does that with additional arguments.
var Presets = []Preset{
	{
		Name: "claude", Dialect: "claude-control", Env: claudeEnv, Install: "npm install -g @anthropic-ai/claude-code",
		Command: args(claudeArg, talkArg), Resume: args(claudeArg, talkArg, resumeArg),
	},
	{
		Name: "claude-print", Dialect: "claude", Env: claudeEnv, Install: "npm install -g @anthropic-ai/claude-code",
		Command: args(claudeArg, lastArg), Resume: args(claudeArg, resumeArg, lastArg),
	},
	{
		Name: "codex", Dialect: "codex", Env: base("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"), Install: "npm install -g @openai/codex",
		Command: []string{"codex", "exec", "--json", "--skip-git-repo-check", "--", "{task}"},
		Resume:  []string{"codex", "exec", "--json", "--skip-git-repo-check", "resume", "{session}", "--", "{task}"},
	},
	{
		Name: "gemini", Dialect: "gemini", Env: base("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", geminiTrust),
		Install: "npm install -g @google/gemini-cli",
		Command: args(geminiArg, promptArg), Resume: args(geminiArg, resumeArg, promptArg),
	},
	{
		Name: "opencode", Dialect: "opencode", Env: base("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENCODE_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
		Install: "npm install -g opencode-ai",
		Command: []string{"opencode", "run", "--format", "json", "--", "{task}"},
		Resume:  []string{"opencode", "run", "--format", "json", "--session", "{session}", "--", "{task}"},
	},
	{
		Name: "qwen", Dialect: "claude", Env: base("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"), Install: "npm install -g @qwen-code/qwen-code",
		Command: args(qwenArg, promptArg), Resume: args(qwenArg, resumeArg, promptArg),
	},
}
