//go:build linux

package procgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/payload"
)

// marked counts the living processes of a run, without the keeper.
func marked(p *Process) (n int) {
	for _, m := range livingProcesses() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", m.pid))
		if err == nil && m.pid != p.PID() && bytes.Contains(env, []byte(p.mark)) {
			n++
		}
	}
	return n
}

// until polls a condition that another process changes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); <-time.After(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

// stubborn is a shell with two descendants in sessions of their own and with an empty
// environment. All three ignore the signals that can be ignored. The last one prints
// "ready".
const stubborn = `trap '' TERM INT HUP; setsid env -i PATH=/bin:/usr/bin sh -c 'trap "" TERM INT HUP; (setsid sh -c "echo ready; exec sleep 1000 </dev/null >/dev/null 2>&1" &) ; exec sleep 1001 </dev/null >/dev/null 2>&1' & wait`

// tree returns a stubborn process, and a function that returns which of the processes
// below its keeper are still alive.
func tree(t *testing.T) (p *Process, living func() []member) {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	p, _ = begin(t, false, stubborn)
	var all []member
	until(t, "three processes", func() bool {
		all = below(p.PID())
		return len(all) >= 3
	})
	return p, func() (left []member) {
		for _, m := range all {
			if startOf(m.pid) == m.started {
				left = append(left, m)
			}
		}
		return left
	}
}

// TestStopReachesOtherSessions checks that a process ends with the others even if it is
// in a session of its own and has cleared its environment.
func TestStopReachesOtherSessions(t *testing.T) {
	p, living := tree(t)
	p.Stop(Ladder{Term: 10 * time.Millisecond})
	if left := living(); len(left) > 0 {
		t.Errorf("there are still %v", left)
	}
}

// TestChildrenEndWithTheProgram kills the program: the keeper must end the processes
// that the program started.
func TestChildrenEndWithTheProgram(t *testing.T) {
	p, living := tree(t)
	for _, m := range below(p.PID()) {
		if m.parent == p.PID() && m.pid == m.group {
			_ = syscall.Kill(m.pid, syscall.SIGKILL)
			break
		}
	}
	<-p.Done()
	begin := time.Now()
	until(t, "all have ended", func() bool { return len(living()) == 0 })
	t.Logf("%v after the program", time.Since(begin))
	p.Stop(Ladder{})
	if p.Exit() != "signal: killed" {
		t.Errorf("it ended with %q", p.Exit())
	}
}

// TestAllEndWithTheServer closes the control pipe, because that is all that a keeper
// sees when its server is killed.
func TestAllEndWithTheServer(t *testing.T) {
	p, living := tree(t)
	_ = p.control.Close()
	until(t, "all have ended", func() bool { return len(living()) == 0 })
	p.Stop(Ladder{})
}

// TestNothingBeginsBeforeItsRelease checks that the program does not run before its
// release, and never runs if the server ends before.
func TestNothingBeginsBeforeItsRelease(t *testing.T) {
	sign := filepath.Join(t.TempDir(), "sign")
	p, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", "touch " + sign}})
	if err != nil {
		t.Fatal(err)
	}
	d := p.Started()
	if d.PID == 0 || d.Started == "" || d.Host == "" || d.Mark == "" {
		t.Errorf("the identity is not complete: %+v", d)
	}
	_ = p.control.Close()
	<-p.gone
	p.Stop(Ladder{})
	if _, err := os.Stat(sign); !errors.Is(err, os.ErrNotExist) {
		t.Error("the program began without its release")
	}
}

// TestKeeperKilled kills the keeper: the program dies with it, and the mark finds the
// other processes.
func TestKeeperKilled(t *testing.T) {
	p, _ := begin(t, false, "setsid sh -c 'echo ready; while :; do sleep 1000; done' & wait")
	if marked(p) < 2 {
		t.Fatal("there are no marked processes")
	}
	_ = syscall.Kill(p.PID(), syscall.SIGKILL)
	<-p.gone
	if n := marked(p); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if p.Success() {
		t.Errorf("it ended with %q", p.Exit())
	}
}

// TestKeeperHasNoVariables checks that an agent cannot read the server's variables from
// its parent process.
func TestKeeperHasNoVariables(t *testing.T) {
	t.Setenv("TAPEDECK_URL", "http://127.0.0.1:1")
	t.Setenv("SECRET", "s3cret")
	p, out := begin(t, false, "echo ready; tr '\\0' ' ' </proc/$PPID/environ; echo; tr '\\0' ' ' </proc/$PPID/cmdline; echo; env")
	for range 2 {
		line, err := out.ReadString('\n')
		if err != nil || strings.Contains(line, "127.0.0.1") || strings.Contains(line, "s3cret") {
			t.Errorf("%q, %v", line, err)
		}
	}
	p.Stop(Ladder{})
}

func TestOwnVariablesAreRemoved(t *testing.T) {
	p, err := Start(Spec{Path: "env", Env: []string{"A=a", "TAPEDECK_URL=http://127.0.0.1:1", "A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(Ladder{})
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(p.Stdout); err != nil {
		t.Fatal(err)
	}
	if want := "A=b\n" + Mark + "=" + p.mark + "\n"; out.String() != want {
		t.Errorf("it has %q, want %q", &out, want)
	}
}

func TestReleaseFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := Start(Spec{Path: "./text", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("%v", err)
	}
	p.Stop(Ladder{})
}

func TestKillLeftover(t *testing.T) {
	p, living := tree(t)
	is := p.Started()
	with := func(change func(*payload.AgentStarted)) payload.AgentStarted {
		d := is
		d.Mark = ""
		change(&d)
		return d
	}
	for name, d := range map[string]payload.AgentStarted{
		"another boot":                with(func(d *payload.AgentStarted) { d.Host = "another" }),
		"another process with the id": with(func(d *payload.AgentStarted) { d.Started += "1" }),
		"an unknown identity":         with(func(d *payload.AgentStarted) { d.Started, d.Host = "", "" }),
		"the first process":           with(func(d *payload.AgentStarted) { d.PID = 1 }),
		"everybody":                   with(func(d *payload.AgentStarted) { d.PID = 0 }),
		"all processes":               with(func(d *payload.AgentStarted) { d.PID = -1 }),
		"a mark that is part of ours": with(func(d *payload.AgentStarted) { d.Started, d.Mark = d.Started+"1", is.Mark[:5] }),
		"a mark of another machine":   with(func(d *payload.AgentStarted) { d.Host, d.Mark = "another", is.Mark }),
	} {
		if killed, err := KillLeftover(d); killed || err != nil {
			t.Errorf("%s: %v, %v", name, killed, err)
		}
	}
	if killed, err := KillLeftover(is); !killed || err != nil || len(living()) > 0 {
		t.Errorf("the process itself: %v, %v, there are still %v", killed, err, living())
	}
	<-p.gone
	if killed, err := KillLeftover(is); killed || err != nil {
		t.Errorf("again: %v, %v", killed, err)
	}
}

// TestKillLeftoverWithoutKeeper has a process whose keeper has ended.
func TestKillLeftoverWithoutKeeper(t *testing.T) {
	p, _ := begin(t, false, "echo ready; sleep 1000")
	is := p.Started()
	p.Stop(Ladder{})
	c := exec.Command("sleep", "1000")
	c.Env = []string{Mark + "=" + is.Mark}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if killed, err := KillLeftover(is); !killed || err != nil {
		t.Errorf("%v, %v", killed, err)
	}
	if err := <-ended; err == nil {
		t.Error("it was not killed")
	}
}
