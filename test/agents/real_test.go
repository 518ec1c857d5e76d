package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

var binaries = flag.String("agents", "", "the folder with the programs of the agents; the tests are skipped without it")

// patience is the time limit of a turn of a real agent. Some agents need many seconds to
// start on a busy machine.
const patience = 3 * time.Minute

// A realAgent is the configuration of a real coding agent.
type realAgent struct {
	name    string
	program string
	toml    string                            // more of its configuration
	prepare func(home, model string) error    // writes its files in its home; nil if it needs none
	env     func(home, model string) []string // its variables, besides PATH and HOME
	edit    func(file string) string          // a task in which it asks for permission to write a file; nil if it does not ask
	only    bool                              // run only the test of the edit
	asks    bool                              // it asks before it runs a command, with this configuration
	starts  string                            // a task in which it starts a sub-agent; "" if it has none, or does not report them
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func qwen(home, _ string) error {
	return write(filepath.Join(home, ".qwen/settings.json"),
		`{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true}}`)
}

func qwenEnv(_, model string) []string {
	return []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + model + "/v1", "OPENAI_MODEL=stub-model"}
}

func opencode(home, model string) error {
	return write(filepath.Join(home, "opencode.json"), fmt.Sprintf(`{"autoupdate":false,"share":"disabled","model":"stub/stub-model","small_model":"stub/stub-model",
		"provider":{"stub":{"npm":"@ai-sdk/openai-compatible","name":"Stub","options":{"baseURL":"%s/v1","apiKey":"x"},"models":{"stub-model":{"name":"Stub"}}}},
		"permission":{"bash":"ask","edit":"ask"}}`, model))
}

func codex(home, model string) error {
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		return err
	}
	return write(filepath.Join(home, ".codex/config.toml"), fmt.Sprintf(`model = "stub-model"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "%s/v1"
env_key = "STUB_KEY"
wire_api = "responses"
`, model))
}

// codexEnv has a folder for temporary files that is not above the home of Codex: there Codex
// does not make the program that confines its commands.
func codexEnv(home, _ string) []string {
	return []string{"STUB_KEY=x", "CODEX_HOME=" + filepath.Join(home, ".codex"), "TMPDIR=" + filepath.Join(home, "tmp")}
}

var realAgents = []realAgent{
	{name: "qwen", program: "qwen", toml: "preset = \"qwen\"\nkind = \"acp\"", prepare: qwen, env: qwenEnv, asks: true, edit: writes("write_file", "file_path", "content")},
	{name: "qwen-stream", program: "qwen", toml: "preset = \"qwen\"\nkind = \"process\"\nargs = [\"--yolo\"]", prepare: qwen, env: qwenEnv},
	{name: "opencode", program: "opencode", toml: "preset = \"opencode\"\nkind = \"acp\"", prepare: opencode, env: func(home, _ string) []string {
		return []string{"OPENCODE_CONFIG=" + filepath.Join(home, "opencode.json"), "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share"}
	}, asks: true, edit: writes("write", "filePath", "content")},
	{name: "codex-asks", program: "codex-acp", toml: "preset = \"codex\"\nkind = \"acp\"\nmode = \"read-only\"", prepare: codex, env: codexEnv, only: true, edit: patches},
	{name: "codex", program: "codex-acp", toml: "preset = \"codex\"\nkind = \"acp\"", prepare: codex, env: codexEnv},
	{name: "claude", program: "claude-agent-acp", toml: "preset = \"claude\"\nkind = \"acp\"", env: func(_, model string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
	}, asks: true, edit: writes("Write", "file_path", "content"), starts: `[tool Agent {"description":"look","prompt":"say hello [tool Bash {\"command\":\"echo hi\",\"description\":\"x\"}]","subagent_type":"general-purpose"}]`},
	{name: "gemini", program: "gemini", toml: "preset = \"gemini\"\nkind = \"acp\"", prepare: func(home, _ string) error {
		return write(filepath.Join(home, ".gemini/settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
	}, env: func(_, model string) []string {
		return []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + model}
	}, asks: true, edit: writes("write_file", "file_path", "content")},
}

// A stage is a server with one real agent.
type stage struct {
	*testing.T
	model  *testmodel.Model
	agent  realAgent
	data   string
	server *testserver.Server
	gone   bool // the server has ended
	args   []string
	choose string // the kind of answers to choose; "" for allow
}

func TestRealAgents(t *testing.T) {
	if *binaries == "" {
		t.Skip("run make real-agents to test real agents")
	}
	t.Setenv("PATH", *binaries+":"+os.Getenv("PATH"))
	model := testmodel.New(testmodel.Options{})
	address := httptest.NewServer(model)
	defer address.Close()
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			if _, err := exec.LookPath(a.program); err != nil {
				t.Skipf("%s is not installed", a.program)
			}
			s := newStage(t, a, model, address.URL)
			if a.only {
				t.Run("a question shows an edit, which is rejected", s.with((*stage).editRejected))
				return
			}
			t.Run("a whole prompt with a tool and a file", s.with((*stage).wholePrompt))
			t.Run("several turns without repeated text", s.with((*stage).turns))
			t.Run("commands and answers are remembered", s.with((*stage).remembers))
			if a.starts != "" {
				t.Run("a sub-agent has a thread of its own", s.with((*stage).subagent))
			}
			t.Run("a question shows an edit, which is rejected", s.with((*stage).editRejected))
			t.Run("cancelled in mid-turn and continued", s.with((*stage).cancelled))
			t.Run("cancelled in a command and continued", s.with((*stage).cancelledInTool))
			t.Run("the agent is killed in mid-turn", s.with((*stage).agentKilled))
			t.Run("the agent is killed in a command", s.with((*stage).killedInTool))
			t.Run("the server is killed in mid-turn", s.with((*stage).serverKilled))
		})
	}
}

func (s *stage) with(f func(*stage)) func(*testing.T) {
	return func(t *testing.T) {
		if s.gone {
			s.server, s.gone = testserver.Start(s.T, s.data, s.args...), false
		}
		inner := *s
		inner.T = t
		f(&inner)
		s.gone = inner.server != s.server // the one that the test has started ends with it
	}
}

func newStage(t *testing.T, a realAgent, m *testmodel.Model, model string) *stage {
	t.Helper()
	home := t.TempDir()
	if a.prepare != nil {
		if err := a.prepare(home, model); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{T: t, model: m, agent: a, data: t.TempDir()}
	env := append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, a.env(home, model)...)
	quoted, _ := json.Marshal(env)
	config := filepath.Join(home, "tapedeck.toml")
	if err := write(config, fmt.Sprintf("[[agent]]\nname = %q\n%s\ncwd = \"session\"\nenv = %s\n", a.name, a.toml, quoted)); err != nil {
		t.Fatal(err)
	}
	s.args = []string{"--config", config}
	s.server = testserver.Start(t, s.data, s.args...)
	return s
}

func (s *stage) subagent() {
	session, events := s.run("", s.agent.starts, nil)
	if !has(events, tapedeck.SubagentStarted) || !has(events, tapedeck.SubagentFinished) || !has(events, tapedeck.RunFinished) {
		s.Fatalf("no sub-agent has begun and ended: %v\n%s", events, s.server.Log())
	}
	threads, err := s.client().Threads(s.Context(), session, -1)
	if err != nil || !slices.ContainsFunc(threads.Threads, func(t view.Thread) bool { return t.Parent == tapedeck.MainThread }) {
		s.Errorf("the threads are %+v, %v", threads, err)
	}
}

func (s *stage) client() *client.Client {
	c, err := client.New(s.server.URL)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	return c
}

// run gives the agent a task, follows the run and answers its questions. It returns the
// events when until returns true, or at the end of the run.
func (s *stage) run(session, task string, until func(*tapedeck.Event) bool) (string, []tapedeck.Event) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	c := s.client()
	started, err := c.Run(ctx, api.Task{Session: session, Agent: s.agent.name, Text: task})
	if err != nil {
		s.Fatal(err)
	}
	o := client.FollowOptions{Until: true}
	o.From, o.Invocation = started.Offset, started.Invocation
	var events []tapedeck.Event
	for rec, err := range c.Follow(ctx, started.Session, o) {
		if err != nil {
			s.Fatalf("after %d events: %v\n%s", len(events), err, s.server.Log())
		}
		e, err := rec.Event()
		if err != nil {
			s.Fatal(err)
		}
		events = append(events, e)
		if e.Type == tapedeck.PermissionRequested {
			s.answer(ctx, c, started.Session, &e)
		}
		if until != nil && until(&e) {
			break
		}
	}
	return started.Session, events
}

// answer answers a question over HTTP with the kind that the test chooses.
func (s *stage) answer(ctx context.Context, c *client.Client, session string, e *tapedeck.Event) {
	s.Helper()
	d, err := payload.DecodeAs[payload.PermissionRequested](*e)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range d.Options {
		if strings.HasPrefix(o.Kind, cmp.Or(s.choose, "allow")) {
			if _, err := c.Answer(ctx, api.Answer{Session: session, Permission: d.ID, Option: o.ID}); err != nil {
				s.Fatal(err)
			}
			return
		}
	}
	s.Fatalf("the question has no option of that kind: %s", e.Data)
}

func has(events []tapedeck.Event, typ string) bool {
	for i := range events {
		if events[i].Type == typ {
			return true
		}
	}
	return false
}

func text(events []tapedeck.Event) string {
	var b strings.Builder
	for i := range events {
		if d, err := payload.DecodeAs[payload.TextMessageContent](events[i]); err == nil {
			b.WriteString(string(d.Delta))
		}
	}
	return b.String()
}

// done fails the test unless the run has finished and has text.
func (s *stage) done(events []tapedeck.Event) {
	s.Helper()
	if len(events) == 0 || events[len(events)-1].Type != tapedeck.RunFinished {
		s.Fatalf("the run ended with %s\n%s", events[len(events)-1].Data, s.server.Log())
	}
	if text(events) == "" && !has(events, tapedeck.TextMessageEnd) {
		s.Error("the run has no text")
	}
}

func (s *stage) wholePrompt() {
	_, events := s.run("", "do it [tools]", nil)
	s.done(events)
	if !has(events, tapedeck.ToolCallResult) || !has(events, tapedeck.AgentLinked) {
		s.Errorf("a tool was used: %v; the run has a link to the agent's own conversation: %v", has(events, tapedeck.ToolCallResult), has(events, tapedeck.AgentLinked))
	}
	if s.agent.asks && !has(events, tapedeck.PermissionRequested) {
		s.Error("the agent did not ask before it ran a command")
	}
	made, _ := filepath.Glob(filepath.Join(testserver.Work(s.data), "*", "work", "*", "*"))
	if len(made) == 0 {
		s.Error("the command did not make a file in the folder of the session")
	}
	s.noLeftover(events)
}

func (s *stage) cancelled() {
	words := 0
	session, events := s.run("", "talk [slow]", func(e *tapedeck.Event) bool {
		if e.Type == tapedeck.TextMessageContent {
			words++
		}
		return words == 3
	})
	c, err := s.client().Cancel(s.Context(), session, "")
	if err != nil || !c.Resumable {
		s.Fatalf("%+v, %v", c, err)
	}
	s.noLeftover(events)
	s.continues(session, s.seen(session))
}

// middle begins a run and returns during its text, with the process of the agent.
func (s *stage) middle() (session string, agent payload.AgentStarted, events []tapedeck.Event) {
	s.Helper()
	session, events = s.run("", "talk [slow]", func(e *tapedeck.Event) bool {
		return e.Type == tapedeck.TextMessageContent
	})
	for i := range events {
		if d, err := payload.DecodeAs[payload.AgentStarted](events[i]); err == nil {
			agent = d
		}
	}
	if agent.PID == 0 {
		s.Fatal("no event has the process of the agent")
	}
	return session, agent, events
}

func (s *stage) agentKilled() {
	session, agent, events := s.middle()
	if err := syscall.Kill(-agent.PID, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.awaitIdle(session)
	s.noLeftover(events)
	s.continues(session, s.seen(session))
}

func (s *stage) serverKilled() {
	session, _, events := s.middle()
	s.server.Kill()
	s.server = testserver.Start(s.T, s.data, s.args...)
	s.awaitIdle(session)
	s.noLeftover(events)
	s.continues(session, s.seen(session))
}

// awaitIdle waits until the session has no run.
func (s *stage) awaitIdle(session string) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; {
		entry, err := s.client().Session(s.Context(), session)
		if err != nil {
			s.Fatal(err)
		}
		if len(entry.Runs) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("session %s is still running", session)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// noLeftover fails the test if a process of the agent is still alive.
func (s *stage) noLeftover(events []tapedeck.Event) {
	s.Helper()
	for i := range events {
		d, err := payload.DecodeAs[payload.AgentStarted](events[i])
		if err != nil {
			continue
		}
		for deadline := time.Now().Add(15 * time.Second); syscall.Kill(-d.PID, 0) == nil; {
			if time.Now().After(deadline) {
				_, _ = procgroup.KillLeftover(d)
				s.Fatalf("processes of the agent's group %d are still alive", d.PID)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}
