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
	session, program := startProgram(t, "--data", data, "--config", config, "run", "go")
	started := agentOf(t, data, session)
	pid := strayOf(t, cwd)
	// Each would end the agent after the death of the other. A keeper that was stopped is no
	// help: the system continues it when its parent dies.
	if err := program.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStop(t, program.Process.Pid)
	if err := syscall.Kill(started.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kill(program)
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

// awaitStop waits until all threads of a process have stopped: the signal arrives later than
// it is sent.
func awaitStop(t *testing.T, pid int) {
	t.Helper()
	running := func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			t.Fatalf("process %d has no threads: %v", pid, err)
		}
		for _, path := range threads {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The state follows the name, which is in parentheses.
			if !bytes.HasPrefix(b[bytes.LastIndexByte(b, ')')+1:], []byte(" T")) {
				return true
			}
		}
		return false
	}
	for begin := time.Now(); running(); <-time.After(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("process %d does not stop", pid)
		}
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
func startProgram(t *testing.T, args ...string) (session string, program *exec.Cmd) {
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
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "session "); ok {
			return id, cmd
		}
	}
	kill(cmd)
	t.Fatal("it did not start a session")
	return "", nil
}

// kill kills a program and waits for its end.
func kill(program *exec.Cmd) {
	_ = program.Process.Kill()
	_ = program.Wait()
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
