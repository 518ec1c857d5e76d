package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
)

// confinedAgent writes the configuration of an agent that is a shell script, and returns
// its path and the folder of the agent.
func confinedAgent(t *testing.T, script, more string) (config, cwd string) {
	t.Helper()
	config, cwd = filepath.Join(t.TempDir(), "agents.toml"), t.TempDir()
	text := fmt.Sprintf(`[[agent]]
name = "sly"
kind = "process"
command = "sh"
args = ["-c", %q]
cwd = %q
sandbox = "bubblewrap"
dialect = "lines"
%s
[agent.mapping.lines.x]
as = "text"
text = "/x"
`, script, cwd, more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, cwd
}

func call(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	code = Main(context.Background(), args, strings.NewReader(""), &b, &b)
	return code, b.String()
}

// TestConfinedAgent: a run of the real program cannot read the files of the server or reach
// it, and what it writes is in its folder only.
func TestConfinedAgent(t *testing.T) {
	if err := (&sandbox.Policy{}).Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	data := filepath.Join(t.TempDir(), "data")
	script := fmt.Sprintf("{ cat %[1]s/server.json || find %[1]s -type f | grep . && echo canary; ls / ; cat /proc/net/tcp | grep -v local && echo canary; env; } > found 2>&1; touch %[1]s/written", data)
	config, cwd := confinedAgent(t, script, fmt.Sprintf("confine = { readable = [%q] }", filepath.Dir(data)))
	t.Setenv("SERVER_KEY", "canary")
	_, out := call(t, "--data", data, "--config", config, "run", "go")
	b, err := os.ReadFile(filepath.Join(cwd, "found"))
	if err != nil || len(b) == 0 {
		t.Fatalf("%v; the run said %s", err, out)
	}
	if strings.Contains(string(b), "canary") || strings.Contains(string(b), `"url"`) {
		t.Errorf("it found %s", b)
	}
	if _, err := os.Stat(filepath.Join(data, "written")); err == nil {
		t.Error("it wrote in the data folder")
	}
	if _, err := os.Stat(filepath.Join(data, "tapedeck.db")); err != nil {
		t.Error("there was no data folder, so the test proves nothing")
	}
}

// TestConfinedFolder: a folder through which an agent could write its own configuration is
// refused, and nothing runs.
func TestConfinedFolder(t *testing.T) {
	if err := (&sandbox.Policy{}).Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	config, cwd := confinedAgent(t, "touch ran", "")
	inside := filepath.Join(cwd, "agents.toml")
	if err := os.Rename(config, inside); err != nil {
		t.Fatal(err)
	}
	code, out := call(t, "--data", t.TempDir(), "--config", inside, "run", "go")
	if code == exitDone || !strings.Contains(out, "must stay hidden") {
		t.Errorf("code %d: %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(cwd, "ran")); err == nil {
		t.Error("the agent ran")
	}
}

// TestNoSandbox: where bubblewrap is missing, every command that shows agents says so, and
// the agent never runs unconfined.
func TestNoSandbox(t *testing.T) {
	config, cwd := confinedAgent(t, "touch ran", "")
	path := t.TempDir()
	shell, err := exec.LookPath("sh")
	if err == nil {
		err = os.Symlink(shell, filepath.Join(path, "sh"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	data := t.TempDir()
	for _, args := range [][]string{{"agents"}, {"doctor"}, {"run", "go"}} {
		code, out := call(t, append([]string{"--data", data, "--config", config}, args...)...)
		if !strings.Contains(out, "bubblewrap is not installed") || code == exitDone && args[0] != "agents" {
			t.Errorf("%v: code %d: %s", args, code, out)
		}
	}
	if _, err := os.Stat(filepath.Join(cwd, "ran")); err == nil {
		t.Error("the agent ran")
	}
}

// TestConfinedKilled: when the program and the keeper are killed at once, no process of a
// confined agent continues, not even one that hides.
func TestConfinedKilled(t *testing.T) {
	if err := (&sandbox.Policy{}).Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	config, cwd := confinedAgent(t, `setsid env -i PATH=/bin:/usr/bin sh -c "trap '' TERM INT HUP; exec </dev/null >/dev/null 2>&1; while :; do echo x >> alive; sleep 0.01; done" & wait`, "")
	data := t.TempDir()
	session, program := startProgram(t, "--data", data, "--config", config, "run", "go")
	started := agentOf(t, data, session)
	alive := filepath.Join(cwd, "alive")
	eventually(t, func() bool { _, err := os.Stat(alive); return err == nil })
	keeper, err := os.FindProcess(started.PID)
	if err != nil {
		t.Fatal(err)
	}
	kill(program)
	_ = keeper.Kill() // it may have ended by itself
	eventually(t, func() bool { id, _ := procgroup.Identity(started.PID); return id == "" })
	eventually(t, func() bool { // the file of which the writer appends every 10 ms does not grow any more
		before, err := os.Stat(alive)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(200 * time.Millisecond)
		after, err := os.Stat(alive)
		return err == nil && after.Size() == before.Size()
	})
}
