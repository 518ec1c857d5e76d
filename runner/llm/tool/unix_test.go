//go:build unix

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// TestPipesAndDevices checks that pipes, devices and sockets do not block the agent.
func TestPipesAndDevices(t *testing.T) {
	b := newBench(t, map[string]string{"a": "x\n"})
	if err := syscall.Mkfifo(filepath.Join(b.folder, "pipe"), 0o644); err != nil {
		t.Skip("there are no pipes here: ", err)
	}
	for _, call := range [][2]string{
		{"read_file", `{"path":"pipe"}`}, {"write_file", `{"path":"pipe","content":"x"}`}, {"edit_file", `{"path":"pipe","old":"x","new":"y"}`},
	} {
		if r := b.call(call[0], call[1]); r.Text != "pipe is not a file." {
			t.Errorf("%s: %+v", call[0], r)
		}
	}
	if r := b.call("search", `{"pattern":"x"}`); r.Text != "a:1:x\n" {
		t.Errorf("%+v", r)
	}
}

func TestCommands(t *testing.T) {
	t.Setenv("DECK_TEST_SECRET", "sk-1")
	t.Setenv("DECK_TEST_SEEN", "seen")
	b := newBench(t, map[string]string{"a": ""})
	for _, tt := range []struct {
		command, want string
		failed        bool
	}{
		{"echo hello; ls", "hello\na\n", false},
		{"echo out; echo err >&2; echo out", "out\nerr\nout\n", false},
		{"true", "[no output]", false},
		{"echo x; exit 3", "x\n[exit status 3]", true},
		{"kill -9 $$", "[signal: killed]", true},
		{"echo $DECK_TEST_SECRET,$DECK_TEST_SEEN,$DECK_TEST_SET", ",seen,set\n", false},
		{"cat", "[no output]", false},
		{"printf 'a\\377'", "a\uFFFD\n", false},
		{"sleep 1000 & echo started", "started\n", false},
	} {
		got := b.call("run_command", fmt.Sprintf(`{"command":%s}`, quoted(tt.command)))
		if diff := cmp.Diff(tool.Result{Text: tt.want, Failed: tt.failed}, got); diff != "" {
			t.Errorf("%s: %s", tt.command, diff)
		}
	}
	got := b.call("run_command", `{"command":"seq 1 100000"}`)
	if len(got.Text) > 70<<10 || !strings.HasPrefix(got.Text, "1\n2\n") || !strings.HasSuffix(got.Text, "99999\n100000\n") || !strings.Contains(got.Text, "bytes left out") {
		t.Errorf("%d bytes: %.20s … %s", len(got.Text), got.Text, got.Text[len(got.Text)-20:])
	}
}

// TestCommandsLeaveNoProcess checks that a process in a session of its own ends with its command, also
// if the command ends by itself.
func TestCommandsLeaveNoProcess(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	b := newBench(t, nil)
	r := b.call("run_command", `{"command":"(setsid env -i /bin/sh -c 'echo $$ > pid; sleep 1000' >/dev/null 2>&1 &); until [ -s pid ]; do sleep .01; done; cat pid"}`)
	var pid int
	if _, err := fmt.Sscan(r.Text, &pid); err != nil {
		t.Fatalf("%+v", r)
	}
	if started, _ := procgroup.Identity(pid); started != "" {
		t.Errorf("process %d is still alive", pid)
	}
}

// TestCommandsWait checks that a command does not begin before its process is stored.
func TestCommandsWait(t *testing.T) {
	b := newBench(t, nil)
	call := tool.Call{Arguments: json.RawMessage(`{"command":"touch begun"}`), Started: func(payload.AgentStarted) error { return errors.New("no") }}
	if r := b.tools["run_command"].Run(t.Context(), call); !r.Failed || b.get("begun") == "" {
		t.Errorf("%+v", r)
	}
}

// TestCommandsEnd checks that a command is killed with all its processes, and that its
// output stays.
func TestCommandsEnd(t *testing.T) {
	for _, tt := range []struct {
		name, arguments, want string
		cancel                bool
	}{
		{"the run is cancelled", `{"command":"echo begun; sh -c 'trap \"\" TERM; touch alive; sleep 1000' & wait"}`, "begun\n[killed: the run was cancelled]", true},
		{"it takes too long", `{"command":"echo begun; touch alive; sleep 1000","timeout":1}`, "begun\n[killed: it took longer than 1s]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pid := 0
			call := tool.Call{Arguments: json.RawMessage(tt.arguments), Started: func(d payload.AgentStarted) error {
				pid = d.PID
				if tt.cancel {
					go func() {
						for b.get("alive") != "" {
							<-time.After(time.Millisecond)
						}
						cancel()
					}()
				}
				return nil
			}}
			begin := time.Now()
			r := b.tools["run_command"].Run(ctx, call)
			if diff := cmp.Diff(tool.Result{Text: tt.want, Failed: true}, r); diff != "" {
				t.Error(diff)
			}
			if took := time.Since(begin); took > 5*time.Minute {
				t.Errorf("it took %v", took)
			}
			if started, _ := procgroup.Identity(pid); started != "" || pid == 0 {
				t.Errorf("process %d is still alive", pid)
			}
		})
	}
}

// TestConfinedCommand: a command in a sandbox sees its folder and not the one beside it, and
// its error has both outputs.
func TestConfinedCommand(t *testing.T) {
	policy := &sandbox.Policy{Limits: procgroup.Limits{Output: 1 << 20}}
	if err := policy.Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	root := t.TempDir()
	folder := filepath.Join(root, "folder")
	for _, dir := range []string{folder, filepath.Join(root, "hidden")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f, err := tool.OpenFolder(folder, tool.Options{Sandbox: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	command := f.Tools()[5]
	for text, want := range map[string]string{
		"echo a > file; cat file; ls ../hidden; exit 3": "a\nls: cannot access '../hidden': No such file or directory\n[exit status 3]",
		"yes >/dev/stderr": "[killed: its output is longer than 1 MiB]",
	} {
		r := command.Run(t.Context(), tool.Call{Arguments: fmt.Appendf(nil, `{"command":%s}`, quoted(text))})
		if !r.Failed || !strings.HasSuffix(r.Text, want) {
			t.Errorf("%s: %.300s", text, r.Text)
		}
	}
	policy.Hidden = []string{filepath.Join(root, "folder", "key")}
	if _, err := tool.OpenFolder(folder, tool.Options{Sandbox: policy}); err == nil {
		t.Error("its tools for files could read what is hidden from its commands")
	}
}
