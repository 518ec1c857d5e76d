package acp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/acp"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// scripted returns a runner of an agent that plays a script of testdata.
func scripted(t testing.TB, name string, o acp.Options) *acp.Runner {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return runner(name, o, "DECK_TEST_SCRIPT="+path)
}

func runner(name string, o acp.Options, env ...string) *acp.Runner {
	o.Command = []string{os.Args[0]}
	o.Env = append(env, "DECK_TEST_DID="+cmp.Or(os.Getenv("DECK_TEST_DID"), os.DevNull), "GORACE=atexit_sleep_ms=0") // the race detector would keep each agent for a second
	if o.Name == "" {
		o.Name = name
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	o.Quiet = time.Millisecond // the agents of the tests store nothing
	return acp.New(o)
}

func TestRunner(t *testing.T) {
	runnertest.Run(t, func(t testing.TB) runnertest.Harness {
		did := filepath.Join(t.TempDir(), "did")
		t.Setenv("DECK_TEST_DID", did)
		task := func(s string) *tapedeck.Invocation { return &tapedeck.Invocation{Task: s} }
		return runnertest.Harness{
			Runner:   scripted(t, "plain", acp.Options{Name: "claude"}),
			Talk:     *task("talk"),
			Text:     "One  two, three",
			Endless:  *task("endless"),
			Fail:     task("fail"),
			Patience: time.Minute,
			Abilities: runnertest.Abilities{
				Tools: task("talk"), Plan: task("talk"), Usage: task("talk"),
				Subagent: task("subagent"),
				Ask:      task("ask"), Did: func() bool { _, err := os.Stat(did); return err == nil },
				Resume: task("recall"), Remembers: "One  two, three",
			},
		}
	})
}

// play runs an invocation and returns a line for each event, and its error. It fails the
// test if a process is still alive afterwards.
func play(t *testing.T, ctx context.Context, r *acp.Runner, in tapedeck.Invocation) ([]string, error) {
	t.Helper()
	if in.ID == "" {
		in.ID = "inv"
	}
	in.Thread = tapedeck.MainThread
	var lines []string
	var failed error
	for e, err := range r.Run(ctx, in) {
		if err != nil {
			failed = err
			continue
		}
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
		if err := payload.CheckData(&e); err != nil {
			t.Errorf("%s %s: %v", e.Type, e.Data, err)
		}
		if started, err := payload.DecodeAs[payload.AgentStarted](e); err == nil {
			defer nobodyLeft(t, started)
			continue
		}
		lines = append(lines, e.Type+" "+strings.ReplaceAll(string(e.Data), in.ID+".", ""))
	}
	return lines, failed
}

func nobodyLeft(t *testing.T, p payload.AgentStarted) {
	t.Helper()
	if p.Started == "" || p.Host == "" {
		t.Error("there is no event with the identity of the process")
	}
	if left, err := procgroup.KillLeftover(p); left || err != nil {
		t.Errorf("a process is still alive; %v", err)
	}
}

func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("event %d is\n%s, want\n%s", i, g, w)
		}
	}
}

func texts(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		var d struct{ Delta string }
		if data, ok := strings.CutPrefix(l, "TEXT_MESSAGE_CONTENT "); ok && json.Unmarshal([]byte(data), &d) == nil {
			b.WriteString(d.Delta)
		}
	}
	return b.String()
}

// without returns the lines that are not of these types.
func without(lines []string, types ...string) []string {
	var out []string
	for _, l := range lines {
		keep := true
		for _, typ := range types {
			keep = keep && !strings.HasPrefix(l, typ)
		}
		if keep {
			out = append(out, l)
		}
	}
	return out
}

func allow(option string) func(context.Context, tapedeck.Question) (tapedeck.Choice, error) {
	return func(context.Context, tapedeck.Question) (tapedeck.Choice, error) {
		return tapedeck.Choice{Option: option, Outcome: "selected"}, nil
	}
}

func TestPlain(t *testing.T) {
	r := scripted(t, "plain", acp.Options{Auth: "key", Mode: "careful"})
	got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got,
		`RAW {"event":"npm warn something","source":"acp:plain"}`,
		`RAW {"event":{"sessionId":"s1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}},"source":"acp:plain"}`,
		`agent.linked {"runner":"acp:plain","nativeId":"s1"}`,
		`REASONING_START {"messageId":"r.m1"}`,
		`REASONING_MESSAGE_START {"messageId":"r.m1","role":"reasoning"}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"r.m1","delta":"so "}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"r.m1","delta":"be it"}`,
		`REASONING_MESSAGE_END {"messageId":"r.m1"}`,
		`REASONING_END {"messageId":"r.m1"}`,
		`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"One  "}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"two, "}`,
		`plan.updated {"entries":[{"content":"count","status":"in_progress","priority":"high"}]}`,
		`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
		`TOOL_CALL_START {"toolCallId":"c.c1","toolCallName":"execute","metadata":{"acp":{"kind":"execute","title":"Run ls"}}}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.c1","delta":"{\"command\":\"ls\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.c1"}`,
		`TOOL_CALL_RESULT {"messageId":"t.c1","toolCallId":"c.c1","content":"a b","role":"tool"}`,
		`TEXT_MESSAGE_START {"messageId":"m.m2","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m2","delta":"three"}`,
		`RAW {"event":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.5,"currency":"USD"}}},"source":"acp:plain"}`,
		`usage.reported {"inputTokens":7,"outputTokens":3,"totalTokens":10,"costUsd":0.5}`,
		`TEXT_MESSAGE_END {"messageId":"m.m2"}`,
	)
}

// TestSubagent has updates of sub-agents: the adapter of Claude Code names the call that
// started them.
func TestSubagent(t *testing.T) {
	got, err := play(t, t.Context(), scripted(t, "claude", acp.Options{}), tapedeck.Invocation{Task: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got,
		`CUSTOM {"name":"tapedeck.equipment","value":{"model":"sonnet"}}`,
		`agent.linked {"runner":"acp:claude","nativeId":"s1"}`,
		`TOOL_CALL_START {"toolCallId":"c.t1","toolCallName":"Agent","metadata":{"acp":{"kind":"think","title":"Agent"}}}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"{\"subagent_type\":\"scout\",\"description\":\"look around\",\"prompt\":\"go\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t1"}`,
		`SUBAGENT_STARTED {"subagentRunId":"s.t1","name":"scout","description":"look around","parentToolCallId":"c.t1"}`,
		`message.added {"message":{"id":"u1","role":"user","content":"go","subagentRunId":"s.t1"}}`,
		`TOOL_CALL_START {"toolCallId":"c.t2","toolCallName":"Read","subagentRunId":"s.t1","metadata":{"acp":{"kind":"read","title":"Read a"}}}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t2","delta":"{\"path\":\"a\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t2"}`,
		`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"meanwhile "}`,
		`TOOL_CALL_RESULT {"messageId":"t.t2","toolCallId":"c.t2","content":"text","role":"tool","subagentRunId":"s.t1"}`,
		`TEXT_MESSAGE_START {"messageId":"m.s.t1/x1","role":"assistant","subagentRunId":"s.t1"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.s.t1/x1","delta":"it is there"}`,
		`TEXT_MESSAGE_END {"messageId":"m.s.t1/x1"}`,
		`SUBAGENT_FINISHED {"subagentRunId":"s.t1"}`,
		`TOOL_CALL_RESULT {"messageId":"t.t1","toolCallId":"c.t1","content":"found","role":"tool"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"done"}`,
		`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
	)
}

func TestQuirks(t *testing.T) {
	for _, tt := range []struct {
		agent string
		want  []string
	}{
		{"gemini", []string{
			`REASONING_START {"messageId":"r1"}`,
			`REASONING_MESSAGE_START {"messageId":"r1","role":"reasoning"}`,
			`REASONING_MESSAGE_CONTENT {"messageId":"r1","delta":"hm"}`,
			`REASONING_MESSAGE_END {"messageId":"r1"}`,
			`REASONING_END {"messageId":"r1"}`,
			`TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"I "}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"will. "}`,
			`TEXT_MESSAGE_END {"messageId":"m2"}`,
			`TOOL_CALL_START {"toolCallId":"c.shell__0","toolCallName":"execute","metadata":{"acp":{"kind":"execute","title":"ls \u003e a"}}}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.shell__0","delta":"{\"command\":\"ls \u003e a\"}"}`,
			`TOOL_CALL_END {"toolCallId":"c.shell__0"}`,
			`TOOL_CALL_RESULT {"messageId":"t.shell__0","toolCallId":"c.shell__0","content":"","role":"tool","metadata":{"acp":{"title":"ls \u003e a"}}}`,
			`TOOL_CALL_START {"toolCallId":"c.shell__1","toolCallName":"execute","metadata":{"acp":{"kind":"execute","title":"date"}}}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.shell__1","delta":"{\"command\":\"date\"}"}`,
			`TOOL_CALL_END {"toolCallId":"c.shell__1"}`,
			`TOOL_CALL_RESULT {"messageId":"t.shell__1","toolCallId":"c.shell__1","content":"","role":"tool","metadata":{"acp":{"title":"date"}}}`,
			`TEXT_MESSAGE_START {"messageId":"m3","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m3","delta":"I "}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m3","delta":"did."}`,
			`usage.reported {"model":"big","inputTokens":100,"outputTokens":20}`,
			`usage.reported {"model":"small","inputTokens":1,"outputTokens":2}`,
			`TEXT_MESSAGE_END {"messageId":"m3"}`,
		}},
		{"qwen", []string{
			`TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"Step 1."}`,
			`usage.reported {"inputTokens":100,"outputTokens":20,"totalTokens":120,"reasoningTokens":0}`,
			`TEXT_MESSAGE_END {"messageId":"m1"}`,
			`plan.updated {"entries":[{"content":"w","status":"pending","priority":"medium"}]}`,
			`TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"Step "}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"2."}`,
			`usage.reported {"inputTokens":100,"outputTokens":20,"totalTokens":120,"reasoningTokens":0}`,
			`TEXT_MESSAGE_END {"messageId":"m2"}`,
			`TEXT_MESSAGE_START {"messageId":"m3","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m3","delta":"Step 3."}`,
			`TEXT_MESSAGE_END {"messageId":"m3"}`,
			`TOOL_CALL_START {"toolCallId":"c.call_4","toolCallName":"run_shell_command"}`,
			`TOOL_CALL_END {"toolCallId":"c.call_4"}`,
			`TOOL_CALL_RESULT {"messageId":"t.call_4","toolCallId":"c.call_4","content":"Output: hi","role":"tool"}`,
		}},
		{"opencode", []string{
			`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"a"}`,
			`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
			`TOOL_CALL_START {"toolCallId":"c.c1","toolCallName":"todowrite","metadata":{"acp":{"kind":"other","title":"todowrite"}}}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.c1","delta":"{\"todos\":[{\"content\":\"w\",\"status\":\"in_progress\",\"priority\":\"high\"}]}"}`,
			`TOOL_CALL_END {"toolCallId":"c.c1"}`,
			`plan.updated {"entries":[{"content":"w","status":"in_progress","priority":"high"}]}`,
			`TOOL_CALL_RESULT {"messageId":"t.c1","toolCallId":"c.c1","content":"ok","role":"tool","metadata":{"acp":{"title":"1 todos"}}}`,
			`TOOL_CALL_START {"toolCallId":"c.c2","toolCallName":"bash","metadata":{"acp":{"kind":"execute","title":"bash"}}}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.c2","delta":"{\"command\":\"ls\",\"cwd\":\"/w\"}"}`,
			`TOOL_CALL_END {"toolCallId":"c.c2"}`,
			`terminal.output {"terminal":"c.c2","data":"a\n"}`,
			`terminal.output {"terminal":"c.c2","data":"b\n"}`,
			`TOOL_CALL_RESULT {"messageId":"t.c2","toolCallId":"c.c2","content":"a\nb\nno","role":"tool","metadata":{"tapedeck":{"error":true}}}`,
			`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"b"}`,
			`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
		}},
		{"codex", []string{
			`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"a"}`,
			`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
			`TOOL_CALL_START {"toolCallId":"c.c1","toolCallName":"exec_command","metadata":{"acp":{"kind":"execute","title":"ls"}}}`,
			`TOOL_CALL_ARGS {"toolCallId":"c.c1","delta":"{\"command\":\"ls\"}"}`,
			`TOOL_CALL_END {"toolCallId":"c.c1"}`,
			`terminal.output {"terminal":"c.c1","data":"x\n"}`,
			`terminal.output {"terminal":"c.c1","data":"y\n"}`,
			`terminal.exit {"terminal":"c.c1","code":0}`,
			`TOOL_CALL_RESULT {"messageId":"t.c1","toolCallId":"c.c1","content":"x\ny\n","role":"tool"}`,
			`usage.reported {"model":"m","inputTokens":5,"outputTokens":1,"totalTokens":6,"reasoningTokens":1}`,
		}},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			start := time.Now()
			r := scripted(t, tt.agent, acp.Options{Name: "some-" + tt.agent, Grace: 10 * time.Minute})
			got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "go", Ask: allow("yes")})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, without(got, "RAW", "agent.linked"), tt.want...)
			if took := time.Since(start); took > 5*time.Minute {
				t.Errorf("it took %v to end", took)
			}
		})
	}
}

func TestPermission(t *testing.T) {
	for _, tt := range []struct{ name, option, result string }{
		{"allowed", "yes", `{"messageId":"t.c1","toolCallId":"c.c1","content":"","role":"tool"}`},
		{"rejected", "no", `{"messageId":"t.c1","toolCallId":"c.c1","content":"not allowed","role":"tool","metadata":{"tapedeck":{"error":true}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked tapedeck.Question
			in := tapedeck.Invocation{Task: "ask", Ask: func(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
				asked = q
				return allow(tt.option)(ctx, q)
			}}
			got, err := play(t, t.Context(), scripted(t, "plain", acp.Options{}), in)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, without(got, "RAW", "agent.linked"),
				`TOOL_CALL_START {"toolCallId":"c.c1","toolCallName":"delete","metadata":{"acp":{"kind":"delete","title":"rm x"}}}`,
				`TOOL_CALL_ARGS {"toolCallId":"c.c1","delta":"{\"path\":\"x\"}"}`,
				`TOOL_CALL_END {"toolCallId":"c.c1"}`,
				`TOOL_CALL_RESULT `+tt.result)
			action := &tapedeck.PermissionAction{Tool: "delete", Arguments: "{\n  \"path\": \"x\"\n}"}
			want := tapedeck.Question{ID: "inv.p1", ToolCallID: "inv.c.c1", Message: "rm x", Action: action, Options: []tapedeck.PermissionOption{
				{ID: "yes", Name: "Allow", Kind: "allow_once"}, {ID: "no", Name: "Reject", Kind: "reject_once"},
			}}
			if !reflect.DeepEqual(asked, want) {
				t.Errorf("asked was %+v, want %+v", asked, want)
			}
		})
	}
}

// TestPermissionShowsTheChange checks that a question shows earlier updates of its call, with
// the line numbers of the file.
// It also checks that an agent that stops after a rejection has finished, and that an
// agent that stops without one has failed.
func TestPermissionShowsTheChange(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "src", "a.go"), []byte("1\n2\n3\na\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, option := range []string{"no", "yes"} {
		var asked tapedeck.Question
		in := tapedeck.Invocation{Task: "ask and stop", Folder: folder, Ask: func(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
			asked = q
			return allow(option)(ctx, q)
		}}
		_, err := play(t, t.Context(), scripted(t, "plain", acp.Options{}), in)
		if (err == nil) != (option == "no") {
			t.Errorf("after %s the run ends with %v", option, err)
		}
		want := &tapedeck.PermissionAction{
			Tool: "edit", Changes: []tapedeck.PermissionChange{{Path: "src/a.go", Diff: "@@ -4,2 +4,2 @@\n a\n-b\n+c\n"}},
			Locations: []tapedeck.PermissionLocation{{Path: "src/a.go", Line: new(int64(2))}},
		}
		if !reflect.DeepEqual(asked.Action, want) {
			t.Errorf("the question shows %+v", asked.Action)
		}
	}
}

// TestWordless checks that no option promises to take words, because the answer has none,
// and that the run ends normally when it is chosen: the next message has the words.
func TestWordless(t *testing.T) {
	var asked tapedeck.Question
	in := tapedeck.Invocation{Task: "ask", Ask: func(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		asked = q
		return allow("cancel")(ctx, q)
	}}
	if _, err := play(t, t.Context(), scripted(t, "codex", acp.Options{}), in); err != nil {
		t.Error(err)
	}
	var names []string
	for _, o := range asked.Options {
		names = append(names, o.Name)
	}
	want := []string{"Yes, proceed", "No, continue without running it", "No, and end the turn: my next message says what to do differently"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("the options are %q", names)
	}
}

// TestPermissionDenied checks that nothing is allowed if nobody can be asked, and that
// an option which the agent did not offer is not chosen.
func TestPermissionDenied(t *testing.T) {
	r := scripted(t, "plain", acp.Options{})
	got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "ask"})
	if err != nil || !strings.Contains(strings.Join(got, "\n"), "not allowed") {
		t.Errorf("%v, %s", err, got)
	}
	_, err = play(t, t.Context(), r, tapedeck.Invocation{Task: "ask", Ask: allow("everything")})
	if err == nil || err.Error() != "the agent stopped as if it had been cancelled" {
		t.Errorf("an option that was not offered was chosen: %v", err)
	}
}

func TestCancelWhileAsking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	in := tapedeck.Invocation{Task: "ask", Ask: func(ctx context.Context, _ tapedeck.Question) (tapedeck.Choice, error) {
		defer close(answered)
		cancel()
		<-ctx.Done()
		return tapedeck.Choice{Outcome: "cancelled"}, nil
	}}
	start := time.Now()
	_, err := play(t, ctx, scripted(t, "plain", acp.Options{Grace: 10 * time.Minute}), in)
	if err != nil || time.Since(start) > 5*time.Minute {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	<-answered
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		agent, task, want string
		options           acp.Options
	}{
		{"plain", "fail", "the agent answered session/prompt with an error: it [31mbroke", acp.Options{}},
		{"plain", "too long", "the agent stopped because the model's answer became too long", acp.Options{}},
		{"plain", "crash", "the agent ended before it answered session/prompt: exit status 3: out of memory", acp.Options{}},
		{"plain", "flood", "the agent sent a line of more than 8 MiB, which is too long to record", acp.Options{}},
		{"stubborn", "crash", "the agent ended before it answered session/prompt: exit status 9", acp.Options{Grace: time.Millisecond}},
		{"rude", "", "the agent speaks version 2 of the protocol, not 1", acp.Options{}},
		{"mute", "", "the agent has not answered initialize in time", acp.Options{Start: 300 * time.Millisecond, Grace: time.Millisecond}},
		{"locked", "", "the agent answered session/new with an error: Authentication required", acp.Options{}},
		{"plain", "", "the agent answered authenticate with an error: \"Method not found\": authenticate", acp.Options{Auth: "another"}},
	} {
		t.Run(tt.agent+" "+tt.task, func(t *testing.T) {
			_, err := play(t, t.Context(), scripted(t, tt.agent, tt.options), tapedeck.Invocation{Task: tt.task})
			var e *tapedeck.Error
			if !errors.As(err, &e) || e.Message != tt.want {
				t.Errorf("the error is %v, want %s", err, tt.want)
			}
		})
	}
}

// TestStubborn checks that an agent that ignores SIGTERM is killed, together with its
// children that ignore it, too.
func TestStubborn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := tapedeck.Invocation{ID: "inv", Task: "go"}
	words := 0
	var p payload.AgentStarted
	for e, err := range scripted(t, "stubborn", acp.Options{Grace: 50 * time.Millisecond}).Run(ctx, in) {
		if err != nil {
			t.Error(err)
		}
		if e.Type == tapedeck.AgentStarted {
			p, _ = payload.DecodeAs[payload.AgentStarted](e)
		}
		if e.Type == tapedeck.TextMessageContent {
			words++
			cancel()
		}
	}
	if words == 0 {
		t.Error("it said nothing")
	}
	nobodyLeft(t, p)
}

func TestOdd(t *testing.T) {
	got, err := play(t, t.Context(), scripted(t, "plain", acp.Options{}), tapedeck.Invocation{Task: "odd"})
	if err != nil {
		t.Fatal(err)
	}
	if texts(got) != "" {
		t.Errorf("it said %q", texts(got))
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"of tomorrow", "image/png", `"entries":"none"`, `"toolCallId":7`, `"update":5`, "_x/status", "not ours", `not JSON \u0007`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is lost", want)
		}
	}
}

func TestAvailable(t *testing.T) {
	if err := acp.New(acp.Options{Command: []string{os.Args[0]}}).Available(); err != nil {
		t.Error(err)
	}
	r := acp.New(acp.Options{Command: []string{"no-such-agent"}, Install: "npm install it"})
	var e *tapedeck.Error
	if err := r.Available(); !errors.As(err, &e) || e.Message != "the program no-such-agent is not installed" || e.Hint != "npm install it" {
		t.Errorf("%v", err)
	}
	if _, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "x"}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("%v", err)
	}
	if err := acp.New(acp.Options{}).Available(); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
}

// TestConfined: an agent in a sandbox does its whole task; its program is in the sandbox
// only if that can see it.
func TestConfined(t *testing.T) {
	policy := &sandbox.Policy{}
	if err := policy.Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	r := scripted(t, "plain", acp.Options{Sandbox: policy})
	if err := r.Available(); err == nil || !strings.Contains(err.Error(), "not visible in the sandbox") {
		t.Errorf("a program that the sandbox hides: %v", err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	policy.Readable = []string{filepath.Dir(os.Args[0]), here}
	in := tapedeck.Invocation{Task: "talk", Folder: t.TempDir()}
	want, err := play(t, t.Context(), scripted(t, "plain", acp.Options{}), in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := play(t, t.Context(), r, in)
	if err != nil || len(got) != len(want) {
		t.Errorf("in the sandbox it said %d lines instead of %d: %v", len(got), len(want), err)
	}
}
