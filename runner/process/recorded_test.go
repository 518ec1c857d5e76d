package process_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/process"
)

// TestRecorded replays recorded output of real agents: no part of it may be lost.
func TestRecorded(t *testing.T) {
	for _, tt := range []struct {
		file, dialect, text string
		has                 []string
		fails               bool
	}{
		{"claude-2.1.197.stream-json.tools", "claude", "Step 1: I will call TaskCreate now. Step 2: I will call Bash now. Step 3: I will call TaskUpdate now. Done after 3 tool results. The file holds hello-from-tool.", []string{"REASONING_START", "hello-from-tool\\nLinux", "plan.updated", `"costUsd":0.004`}, false},
		{"claude-2.1.197.stream-json.todowrite", "claude", "", []string{"plan.updated", "hello-from-tool"}, false},
		{"claude-2.1.197.stream-json.denied", "claude", "", []string{"permission_denials", `"error":true`}, false},
		{"claude-2.1.197.stream-json.resume", "claude", `Stub answer number 2 to: "second question". All is well.`, []string{"agent.linked"}, false},
		{"claude-2.1.197.stream-json.fork", "claude", `Stub answer number 3 to: "third question". All is well.`, []string{"agent.linked"}, false},
		{"claude-2.1.197.stream-json.sigint", "claude", "word0 word1 word2 word3 word4 word5 word6 word7 word8 word9 word10 word11 ", []string{"agent.linked"}, true},
		{"qwen-0.15.10.stream-json.tools", "claude", "Step 1: I will call todo_write now. Step 2: I will call run_shell_command now. Step 3: I will call todo_write now. Done after 3 tool results. The file holds hello-from-tool.", []string{"plan.updated", "hello-from-tool\\nLinux", `"inputTokens":100`}, false},
		{"codex-0.169.0.exec-json.tools", "codex", "Step 1: I will call exec_command now. Done after 1 tool results. The file holds hello-from-tool.", []string{"REASONING_START", "hello-from-tool\\nLinux", `"inputTokens":200`}, false},
		{"codex-0.169.0.exec-json.sigterm", "codex", "", []string{"agent.linked"}, true},
		{"gemini-0.61.0.stream-json.tools", "gemini", "Step 1: I will call run_shell_command now. Done after 1 tool results. The file holds hello-from-tool.", []string{"hello-from-tool\\nLinux", `"inputTokens":300`}, false},
		{"opencode-1.18.33.run-json.tools", "opencode", "Step 1: I will call todowrite now. Step 2: I will call bash now. ", []string{"plan.updated", "rejected permission"}, false},
		{"pi-0.73.1.mode-json.tools", "pi", "Step 1: I will call bash now. Done after 1 tool results. The file holds hello-from-tool.", []string{"hello-from-tool\\nLinux", `"inputTokens":100`}, false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("../../../shared/transcripts/agent-wire", tt.file+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Skipf("there is no recording of %s here", tt.file)
			}
			r, err := process.New(process.Options{
				Name: "x", Dialect: tt.dialect, Command: []string{os.Args[0]},
				Env: []string{"GORACE=atexit_sleep_ms=0", "DECK_TEST_RECORDING=" + path},
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := run(t, t.Context(), r, tapedeck.Invocation{Task: "go"})
			if (err != nil) != tt.fails {
				t.Errorf("it ended with %v", err)
			}
			all := strings.Join(got, "\n")
			if tt.text != "" && texts(got) != tt.text {
				t.Errorf("it said %q, want %q", texts(got), tt.text)
			}
			for _, want := range tt.has {
				if !strings.Contains(all, want) {
					t.Errorf("there is no %s in\n%s", want, all)
				}
			}
			if starts, results := len(only(got, "TOOL_CALL_START")), len(only(got, "TOOL_CALL_RESULT")); starts != results {
				t.Errorf("%d tool calls, %d answers", starts, results)
			}
		})
	}
}

func texts(lines []string) string {
	var b strings.Builder
	for _, l := range only(lines, "TEXT_MESSAGE_CONTENT") {
		var d struct{ Delta string }
		if json.Unmarshal([]byte(strings.TrimPrefix(l, "TEXT_MESSAGE_CONTENT ")), &d) == nil {
			b.WriteString(d.Delta)
		}
	}
	return b.String()
}
