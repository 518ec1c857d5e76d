package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/procgroup"
)

// When this program is killed its agent goes on; the next one that has the data
// folder ends it, and the run.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("which processes are left can be told on Linux only")
	}
	config := filepath.Join(t.TempDir(), "agents.toml")
	text := "[[agent]]\nname = \"sleeper\"\nkind = \"process\"\ncommand = \"sh\"\nargs = [\"-c\", \"sleep 1000 & sleep 1000\"]\n" +
		"dialect = \"lines\"\n[agent.mapping.lines.x]\nas = \"text\"\ntext = \"/x\"\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	session, kill := startProgram(t, "--data", data, "--config", config, "run", "go")
	started := agentOf(t, data, session)
	kill()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", started.PID)); err != nil {
		t.Fatalf("the agent did not go on, so there is nothing to see: %v", err)
	}

	var out, errs bytes.Buffer
	if code := Main(context.Background(), []string{"--data", data, "--config", config, "ls", "--json"}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("code %d: %s", code, &errs)
	}
	if left, err := procgroup.KillLeftover(started.PID, started.Started, started.Host); left || err != nil {
		t.Errorf("the agent was left running, %v", err)
	}
	if !strings.Contains(out.String(), `"status":"interrupted"`) {
		t.Errorf("the session is %s", &out)
	}
}

// startProgram runs this program as a process of its own, until it has begun a
// session.
func startProgram(t *testing.T, args ...string) (session string, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: exe, Args: append([]string{"tapedeck"}, args...), Env: os.Environ()}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "session "); ok {
			return id, kill
		}
	}
	kill()
	t.Fatal("it has begun no session")
	return "", nil
}

// agentOf waits until the process of an agent is in the log.
func agentOf(t *testing.T, data, session string) tapedeck.AgentStartedData {
	t.Helper()
	n, _ := readNote(data)
	c, err := client.New(n.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for rec, err := range c.Follow(t.Context(), session, client.FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		ev, err := rec.Event()
		if err != nil {
			t.Fatal(err)
		}
		if d, err := tapedeck.DecodeAs[tapedeck.AgentStartedData](ev); err == nil {
			return d
		}
		if ev.Type == tapedeck.RunError {
			t.Fatalf("the run has failed: %s", ev.Data)
		}
	}
	t.Fatal("the log has ended")
	return tapedeck.AgentStartedData{}
}
