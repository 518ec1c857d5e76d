package acp

// A Preset is the configuration of a well-known agent.
type Preset struct {
	Name    string
	Command []string
	Env     []string // names of variables that it gets from our environment
	Auth    string   // see [Options]
	Install string   // a sentence that says how to install it
}

// base returns the variables that almost every program needs, and more.
func base(more ...string) []string {
	return append([]string{"PATH", "HOME", "LANG", "TMPDIR"}, more...)
}

// Presets are the agents that were tried, sorted by name.
var Presets = []Preset{
	{
		Name: "claude", Command: []string{"claude-agent-acp"},
		Env:     base("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR"),
		Install: "npm install -g @agentclientprotocol/claude-agent-acp",
	},
	{
		Name: "codex", Command: []string{"codex-acp"},
		Env:     base("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"),
		Install: "npm install -g @agentclientprotocol/codex-acp",
	},
	{
		Name: "gemini", Command: []string{"gemini", "--acp"},
		Env:  base("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
		Auth: "gemini-api-key", Install: "npm install -g @google/gemini-cli",
	},
	{
		Name: "opencode", Command: []string{"opencode", "acp"},
		Env:     base("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENCODE_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
		Install: "npm install -g opencode-ai",
	},
	{
		Name: "qwen", Command: []string{"qwen", "--acp"},
		Env:     base("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"),
		Install: "npm install -g @qwen-code/qwen-code",
	},
}
