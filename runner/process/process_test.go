package process_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/process"
	"github.com/tapedeck/tapedeck/runner/runnertest"
)

// scripted returns a runner of a program that prints lines of testdata.
func scripted(t testing.TB, files string, o process.Options) *process.Runner {
	t.Helper()
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	o.Env = []string{"GORACE=atexit_sleep_ms=0", "DECK_TEST_DIALECT=" + files, "DECK_TEST_DATA=" + data, "DECK_TEST_DID=" + os.Getenv("DECK_TEST_DID")}
	if o.Command == nil {
		o.Command, o.Resume = []string{os.Args[0], "{task}"}, []string{os.Args[0], "{session}"}
	}
	if o.Dialect == "" {
		o.Dialect = files
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	o.Name = "x"
	r, err := process.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunner(t *testing.T) {
	for _, files := range []string{"claude", "control"} {
		t.Run(files, func(t *testing.T) {
			runnertest.Run(t, func(t testing.TB) runnertest.Harness { return harness(t, files) })
		})
	}
}

func harness(t testing.TB, files string) runnertest.Harness {
	did := filepath.Join(t.TempDir(), "did")
	t.Setenv("DECK_TEST_DID", did)
	task := func(s string) *tapedeck.Invocation { return &tapedeck.Invocation{Task: s} }
	h := runnertest.Harness{
		Runner:    scripted(t, files, process.Options{Dialect: "claude"}),
		Talk:      *task("talk"),
		Text:      "One  two, three",
		Endless:   *task("endless"),
		Fail:      task("fail"),
		Patience:  time.Minute,
		Abilities: runnertest.Abilities{Tools: task("talk"), Plan: task("plan"), Usage: task("talk"), Subagent: task("subagent"), Resume: task("go on"), Remembers: "I remember"},
	}
	if files == "control" {
		h.Runner = scripted(t, files, process.Options{Dialect: "claude-control"})
		h.Subagent, h.Plan, h.Ask, h.Did = nil, task("talk"), task("ask"), func() bool { _, err := os.Stat(did); return err == nil }
	}
	return h
}

// run runs an invocation and returns a line for each event, and its error. It
// fails the test if a process is still alive afterwards.
func run(t *testing.T, ctx context.Context, r *process.Runner, in tapedeck.Invocation) ([]string, error) {
	t.Helper()
	in.ID, in.Thread = "inv", tapedeck.MainThread
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
		if p, err := payload.DecodeAs[payload.AgentStarted](e); err == nil {
			defer func() {
				if left, err := procgroup.KillLeftover(p); left || err != nil {
					t.Errorf("a process is still alive; %v", err)
				}
			}()
			continue
		}
		lines = append(lines, e.Type+" "+strings.ReplaceAll(string(e.Data), "inv.", ""))
	}
	return lines, failed
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

// only returns the lines of a type.
func only(lines []string, typ string) []string {
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, typ+" ") {
			out = append(out, l)
		}
	}
	return out
}

func TestClaude(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "claude", process.Options{}), tapedeck.Invocation{Task: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(only(got, "RAW")); n != 3 { // init, status and result
		t.Errorf("%d lines were kept as RAW", n)
	}
	compare(t, without(got, "RAW"),
		`CUSTOM {"name":"tapedeck.equipment","value":{"tools":["Bash"]}}`,
		`agent.linked {"runner":"process:x","nativeId":"s-1"}`,
		`REASONING_START {"messageId":"r.m1"}`,
		`REASONING_MESSAGE_START {"messageId":"r.m1","role":"reasoning"}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"r.m1","delta":"so "}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"r.m1","delta":"be it"}`,
		`REASONING_ENCRYPTED_VALUE {"subtype":"message","entityId":"r.m1","encryptedValue":"c2ln"}`,
		`REASONING_MESSAGE_END {"messageId":"r.m1"}`,
		`REASONING_END {"messageId":"r.m1"}`,
		`TEXT_MESSAGE_START {"messageId":"m.m1","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"One  "}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m1","delta":"two, "}`,
		`TEXT_MESSAGE_END {"messageId":"m.m1"}`,
		`TOOL_CALL_START {"toolCallId":"c.t1","toolCallName":"Bash","parentMessageId":"m.m1"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"{\"comman"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"d\": \"ls\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t1"}`,
		`TOOL_CALL_RESULT {"messageId":"t.t1","toolCallId":"c.t1","content":"a b","role":"tool"}`,
		`usage.reported {"model":"m","inputTokens":14,"outputTokens":5,"cachedInputTokens":4}`,
		`TEXT_MESSAGE_START {"messageId":"m.m2","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m2","delta":"three"}`,
		`TEXT_MESSAGE_END {"messageId":"m.m2"}`,
		`usage.reported {"model":"m","inputTokens":14,"outputTokens":2,"cachedInputTokens":4,"costUsd":0.25}`,
	)
}

// TestClaudeTurns: the usage of a model call is of its turn, although it is reported when the
// next one begins.
func TestClaudeTurns(t *testing.T) {
	var turns []int
	in := tapedeck.Invocation{ID: "inv", Thread: tapedeck.MainThread, Task: "talk"}
	for e, err := range scripted(t, "claude", process.Options{}).Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.UsageReported {
			turns = append(turns, e.Turn)
		}
	}
	if !slices.Equal(turns, []int{1, 2}) {
		t.Errorf("the usage is of the turns %v", turns)
	}
}

// TestClaudeNotes checks the notes that the SSE task protocol shows and for which
// AG-UI has no event.
func TestClaudeNotes(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "claude", process.Options{}), tapedeck.Invocation{Task: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, only(got, "CUSTOM"),
		`CUSTOM {"name":"tapedeck.equipment","value":{"model":"m","tools":["Bash","Read"],"skills":["pdf"]}}`,
		`CUSTOM {"name":"task.profile_switch","value":{"profile_name":"plan","profile_type":"permission_mode","tools":["Bash","Read"]}}`,
		`CUSTOM {"name":"task.hook_triggered","value":{"decision":"deny","hook_event":"PreToolUse","message":"no shell","tool_name":"Bash"}}`,
		`CUSTOM {"name":"task.hook_triggered","value":{"decision":"success","hook_event":"Stop","message":null,"tool_name":null}}`,
		`CUSTOM {"name":"task.output_display","value":{"output":"42","result_files":["a.txt"],"status":"COMPLETE"}}`,
	)
}

func TestClaudeTodos(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "claude", process.Options{}), tapedeck.Invocation{Task: "todos"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, only(got, "plan.updated"),
		`plan.updated {"entries":[{"content":"w","status":"in_progress"}]}`,
		`plan.updated {"entries":[{"content":"one","status":"pending"}]}`,
		`plan.updated {"entries":[{"content":"one","status":"pending"},{"content":"two","status":"pending"}]}`,
		`plan.updated {"entries":[{"content":"one","status":"completed"},{"content":"two","status":"pending"}]}`,
		`plan.updated {"entries":[{"content":"one","status":"completed"}]}`,
	)
}

func TestClaudeSubagent(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "claude", process.Options{}), tapedeck.Invocation{Task: "subagent"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, without(got, "RAW", "CUSTOM", "agent.linked", "usage"),
		`TOOL_CALL_START {"toolCallId":"c.t1","toolCallName":"Task"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"{\"subagent_type\":\"scout\",\"description\":\"look around\",\"prompt\":\"go\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t1"}`,
		`SUBAGENT_STARTED {"subagentRunId":"s.t1","name":"scout","description":"look around","parentToolCallId":"c.t1"}`,
		`message.added {"message":{"id":"u1","role":"user","content":"go","subagentRunId":"s.t1"}}`,
		`TEXT_MESSAGE_START {"messageId":"m.s.t1/x1","role":"assistant","subagentRunId":"s.t1"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.s.t1/x1","delta":"looking"}`,
		`TEXT_MESSAGE_END {"messageId":"m.s.t1/x1"}`,
		`TOOL_CALL_START {"toolCallId":"c.t2","toolCallName":"Read","subagentRunId":"s.t1"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t2","delta":"{\"path\":\"a\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t2"}`,
		`TOOL_CALL_RESULT {"messageId":"t.t2","toolCallId":"c.t2","content":"text","role":"tool","subagentRunId":"s.t1"}`,
		`TEXT_MESSAGE_START {"messageId":"m.s.t1/x3","role":"assistant","subagentRunId":"s.t1"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.s.t1/x3","delta":"found"}`,
		`TEXT_MESSAGE_END {"messageId":"m.s.t1/x3"}`,
		`SUBAGENT_FINISHED {"subagentRunId":"s.t1"}`,
		`TOOL_CALL_RESULT {"messageId":"t.t1","toolCallId":"c.t1","content":"found it[image]","role":"tool"}`,
		`TEXT_MESSAGE_START {"messageId":"m.m2","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.m2","delta":"done"}`,
		`TEXT_MESSAGE_END {"messageId":"m.m2"}`,
	)
}

func TestControl(t *testing.T) {
	for _, tt := range []struct{ name, option, result string }{
		{"allow", "allow", `{"messageId":"t.t1","toolCallId":"c.t1","content":"gone","role":"tool"}`},
		{"always", "allow_always", `{"messageId":"t.t1","toolCallId":"c.t1","content":"gone","role":"tool"}`},
		{"reject", "reject", `{"messageId":"t.t1","toolCallId":"c.t1","content":"not allowed","role":"tool","metadata":{"tapedeck":{"error":true}}}`},
		{"reject", "what was not offered", `{"messageId":"t.t1","toolCallId":"c.t1","content":"not allowed","role":"tool","metadata":{"tapedeck":{"error":true}}}`},
	} {
		t.Run(tt.option, func(t *testing.T) {
			var asked tapedeck.Question
			in := tapedeck.Invocation{Task: "the task", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
				asked = q
				return tapedeck.Choice{Option: tt.option}, nil
			}}
			got, err := run(t, t.Context(), control(t, tt.name), in)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, only(got, "TOOL_CALL_RESULT"), "TOOL_CALL_RESULT "+tt.result)
			if asked.ID != "inv.p1" || asked.ToolCallID != "inv.c.t1" || len(asked.Options) != 3 {
				t.Errorf("asked was %+v", asked)
			}
			if a := asked.Action; a == nil || a.Tool != "Bash" || a.Command != "rm x" {
				t.Errorf("the question shows %+v", a)
			}
		})
	}
}

func control(t *testing.T, file string) *process.Runner {
	return scripted(t, "control", process.Options{Dialect: "claude-control", Command: []string{os.Args[0], file}})
}

// TestControlAlone runs an agent that cannot ask people: nothing is allowed. An
// unknown request is answered, too; otherwise the agent would never stop waiting.
func TestControlAlone(t *testing.T) {
	for _, file := range []string{"reject", "odd"} {
		if _, err := run(t, t.Context(), control(t, file), tapedeck.Invocation{Task: "the task"}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestControlCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := tapedeck.Invocation{Task: "the task", Ask: func(ctx context.Context, _ tapedeck.Question) (tapedeck.Choice, error) {
		cancel()
		<-ctx.Done()
		return tapedeck.Choice{Outcome: "cancelled"}, nil
	}}
	got, err := run(t, ctx, control(t, "cancel"), in)
	if err != nil || !strings.Contains(strings.Join(got, "\n"), "error_during_execution") {
		t.Errorf("%v; it was not interrupted by a message: %s", err, got)
	}
}

func TestCodex(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "codex", process.Options{}), tapedeck.Invocation{Task: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, without(got, "REASONING"),
		`agent.linked {"runner":"process:x","nativeId":"th-1"}`,
		`RAW {"event":{"type":"item.completed","item":{"id":"item_0","type":"error","message":"careful"}},"source":"process:x"}`,
		`plan.updated {"entries":[{"content":"a","status":"pending"}]}`,
		`plan.updated {"entries":[{"content":"a","status":"completed"}]}`,
		`TOOL_CALL_START {"toolCallId":"c.item_3","toolCallName":"shell"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.item_3","delta":"{\"command\":\"ls\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.item_3"}`,
		`TOOL_CALL_RESULT {"messageId":"t.item_3","toolCallId":"c.item_3","content":"no\n","role":"tool","metadata":{"tapedeck":{"error":true}}}`,
		`TOOL_CALL_START {"toolCallId":"c.item_4","toolCallName":"file_change"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.item_4","delta":"{\"changes\":[{\"path\":\"a\",\"kind\":\"add\"}]}"}`,
		`TOOL_CALL_END {"toolCallId":"c.item_4"}`,
		`TOOL_CALL_RESULT {"messageId":"t.item_4","toolCallId":"c.item_4","content":"","role":"tool"}`,
		`TOOL_CALL_START {"toolCallId":"c.item_5","toolCallName":"srv.look"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.item_5","delta":"{\"q\":1}"}`,
		`TOOL_CALL_END {"toolCallId":"c.item_5"}`,
		`TOOL_CALL_RESULT {"messageId":"t.item_5","toolCallId":"c.item_5","content":"seen","role":"tool"}`,
		`TEXT_MESSAGE_START {"messageId":"m.item_6","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m.item_6","delta":"done"}`,
		`TEXT_MESSAGE_END {"messageId":"m.item_6"}`,
		`usage.reported {"inputTokens":20,"outputTokens":4,"cachedInputTokens":5}`,
	)
}

// TestOpencodeRefuses checks that opencode, which stops after it has refused a call by
// itself, has finished then. A step with a call that failed is not its last one.
func TestOpencodeRefuses(t *testing.T) {
	got, err := run(t, t.Context(), scripted(t, "opencode", process.Options{}), tapedeck.Invocation{Task: "refused"})
	if err != nil {
		t.Error(err)
	}
	compare(t, only(got, "TOOL_CALL_RESULT"),
		`TOOL_CALL_RESULT {"messageId":"t.c1","toolCallId":"c.c1","content":"The user rejected permission to use this specific tool call.","role":"tool","metadata":{"tapedeck":{"error":true}}}`)
	if _, err := run(t, t.Context(), scripted(t, "opencode", process.Options{}), tapedeck.Invocation{Task: "died"}); err == nil {
		t.Error("a run whose last step was not the last of the agent has finished")
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct{ files, task, want string }{
		{"claude", "fail", "the agent failed: API Error: no [1mkey"},
		{"claude", "nothing", "the agent ended without a result: exit status 0: it was interrupted"},
		{"claude", "orphan", "the agent ended without a result: exit status 9"},
		{"claude", "no such task", "the agent ended without a result: exit status 1: there is no such task or conversation"},
		{"codex", "fail", "the agent failed: no quota"},
		{"claude", "flood", "the agent sent a line of more than 8 MiB, which is too long to record"},
	} {
		t.Run(tt.task, func(t *testing.T) {
			grace := 30 * time.Second // for what it prints last, on a busy machine
			if tt.task == "orphan" {
				grace = 100 * time.Millisecond // another process keeps its output open
			}
			r := scripted(t, tt.files, process.Options{Grace: grace})
			_, err := run(t, t.Context(), r, tapedeck.Invocation{Task: tt.task})
			var e *tapedeck.Error
			if !errors.As(err, &e) || e.Message != tt.want {
				t.Errorf("the error is %v, want %s", err, tt.want)
			}
		})
	}
}

// TestStubborn checks that a program that ignores all signals is killed, together
// with its children that ignore them, too.
func TestStubborn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range scripted(t, "claude", process.Options{Grace: 50 * time.Millisecond}).Run(ctx, tapedeck.Invocation{ID: "inv", Task: "deaf"}) {
		if err != nil {
			t.Error(err)
		}
		if p, err := payload.DecodeAs[payload.AgentStarted](e); err == nil {
			defer func() {
				if left, _ := procgroup.KillLeftover(p); left {
					t.Error("a process is still alive")
				}
			}()
		}
		if e.Type == tapedeck.TextMessageContent {
			cancel()
		}
	}
	if ctx.Err() == nil {
		t.Error("it said nothing")
	}
	if _, err := run(t, t.Context(), scripted(t, "claude", process.Options{Grace: 50 * time.Millisecond}), tapedeck.Invocation{Task: "linger"}); err != nil {
		t.Errorf("the program has a result but does not exit; the result must count: %v", err)
	}
}

func history(context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		yield(payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("u1", "user", "before")}), nil)
	}
}

func TestResume(t *testing.T) {
	r := scripted(t, "claude", process.Options{})
	got, err := run(t, t.Context(), r, tapedeck.Invocation{Task: "x", History: history, Link: &tapedeck.Link{Runner: "process:x", NativeID: "resumed"}})
	if all := strings.Join(got, "\n"); err != nil || !strings.Contains(all, "again") || strings.Contains(all, "lossy") {
		t.Errorf("%v, %s", err, all)
	}
	// The program cannot find the conversation, so its task has the history before it.
	// The run fails because no file in testdata has the name of that task.
	got, err = run(t, t.Context(), r, tapedeck.Invocation{Task: "talk", History: history, Link: &tapedeck.Link{Runner: "process:x", NativeID: "gone"}})
	if all := strings.Join(got, "\n"); err == nil || strings.Count(all, "lossy") != 1 || !strings.Contains(all, "could not resume") {
		t.Errorf("%v, %s", err, all)
	}
	// The program had already reported something, so it is not started again.
	got, err = run(t, t.Context(), r, tapedeck.Invocation{Task: "talk", History: history, Link: &tapedeck.Link{Runner: "process:x", NativeID: "nothing"}})
	if all := strings.Join(got, "\n"); err == nil || strings.Contains(all, "lossy") {
		t.Errorf("%v, %s", err, all)
	}
}

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		options process.Options
		want    string
	}{
		{process.Options{}, "the dialect is missing: what the program prints"},
		{process.Options{Dialect: "latin"}, `there is no dialect "latin"`},
		{process.Options{Dialect: process.Mapped}, `the dialect "lines" needs a mapping`},
		{mapped(t, `{"lines":{"a":{"as":"b"}}}`), `lines of the type "a" have the unknown meaning "b"`},
		{mapped(t, `{"lines":{"a":{"as":"text","text":"t"}}}`), `"t" is not a JSON pointer`},
	} {
		if _, err := process.New(tt.options); tapedeck.KindOf(err) != tapedeck.Invalid || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	for _, p := range process.Presets {
		r, err := process.New(process.Options{Dialect: p.Dialect, Command: []string{"no-such-program"}, Install: p.Install})
		if err != nil {
			t.Fatal(err)
		}
		var e *tapedeck.Error
		if err := r.Available(); !errors.As(err, &e) || e.Hint != p.Install {
			t.Errorf("%s: %v", p.Name, err)
		}
		if len(p.Command) == 0 || p.Resume == nil || !strings.Contains(strings.Join(p.Resume, " "), "{session}") {
			t.Errorf("%s: %q", p.Name, p.Resume)
		}
	}
}

// TestArguments checks that no task looks like an option, and that none is cut.
func TestArguments(t *testing.T) {
	r := scripted(t, "claude", process.Options{})
	for task, want := range map[string]tapedeck.Kind{
		"a\x00b": tapedeck.Invalid, strings.Repeat("x", 130<<10): tapedeck.TooLarge, "../../../etc/passwd": tapedeck.Unavailable,
	} {
		if _, err := run(t, t.Context(), r, tapedeck.Invocation{Task: task}); tapedeck.KindOf(err) != want {
			t.Errorf("%.20q: %v", task, err)
		}
	}
	for _, p := range process.Presets {
		for _, args := range [][]string{p.Command, p.Resume} {
			for i, a := range args {
				if a == "{task}" && args[i-1] != "--" {
					t.Errorf("%s: a task can look like an option in %q", p.Name, args)
				}
			}
		}
	}
}

// TestControlAsksEarly has Claude Code ask before the block of its call ends: the
// arguments that were streamed are not recorded twice.
func TestControlAsksEarly(t *testing.T) {
	t.Setenv("DECK_TEST_DID", filepath.Join(t.TempDir(), "did"))
	in := tapedeck.Invocation{Task: "the task", Ask: func(context.Context, tapedeck.Question) (tapedeck.Choice, error) {
		return tapedeck.Choice{Option: "allow"}, nil
	}}
	got, err := run(t, t.Context(), control(t, "early"), in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, append(only(got, "TOOL_CALL_ARGS"), only(got, "TOOL_CALL_END")...),
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"{\"command"}`,
		`TOOL_CALL_ARGS {"toolCallId":"c.t1","delta":"\": \"rm x\"}"}`,
		`TOOL_CALL_END {"toolCallId":"c.t1"}`,
	)
}
