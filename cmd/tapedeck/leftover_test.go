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
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
)

// TestKilled: if this program and the keeper of its agent are killed at once, a process
// of the agent continues. The next program that opens the data folder ends the process
// and the run.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("which processes are left can be told on Linux only")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	config := filepath.Join(t.TempDir(), "agents.toml")
	cwd := t.TempDir()
	text := "[[agent]]\nname = \"sleeper\"\nkind = \"process\"\ncommand = \"sh\"\nargs = [\"-c\", \"setsid sh -c 'echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000' & wait\"]\n" +
		"cwd = \"" + cwd + "\"\ndialect = \"lines\"\n[agent.mapping.lines.x]\nas = \"text\"\ntext = \"/x\"\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	session, kill := startProgram(t, "--data", data, "--config", config, "run", "go")
	started := agentOf(t, data, session)
	pid := strayOf(t, cwd)
	keeper, err := os.FindProcess(started.PID)
	if err == nil {
		err = keeper.Signal(syscall.SIGSTOP) // otherwise it would end the agent
	}
	if err != nil {
		t.Fatal(err)
	}
	kill()
	_ = keeper.Kill()
	if id, _ := procgroup.Identity(pid); id == "" {
		t.Fatal("no process of the agent continued; the test proves nothing")
	}

	var out, errs bytes.Buffer
	if code := Main(context.Background(), []string{"--data", data, "--config", config, "ls", "--json"}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("code %d: %s", code, &errs)
	}
	if id, _ := procgroup.Identity(pid); id != "" {
		t.Errorf("process %d was left running", pid)
	}
	if !strings.Contains(out.String(), `"status":"interrupted"`) {
		t.Errorf("the session is %s", &out)
	}
}

// strayOf waits for the process id that the agent writes into its folder.
func strayOf(t *testing.T, folder string) (pid int) {
	t.Helper()
	for begin := time.Now(); ; <-time.After(2 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(folder, "pid"))
		if err == nil {
			if _, err = fmt.Sscan(string(b), &pid); err == nil {
				return pid
			}
		}
		if time.Since(begin) > time.Minute {
			t.Fatal(err)
		}
	}
}

// startProgram runs this program as another process and waits until it has started a
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
	t.Fatal("it did not start a session")
	return "", nil
}

// agentOf waits until the log has the process of the agent.
func agentOf(t *testing.T, data, session string) payload.AgentStarted {
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
		if d, err := payload.DecodeAs[payload.AgentStarted](ev); err == nil {
			return d
		}
		if ev.Type == tapedeck.RunError {
			t.Fatalf("the run has failed: %s", ev.Data)
		}
	}
	t.Fatal("the log has ended")
	return payload.AgentStarted{}
}
