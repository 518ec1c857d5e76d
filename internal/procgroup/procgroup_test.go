//go:build unix

package procgroup

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// begin starts a shell and waits until it has said "ready".
func begin(t *testing.T, stdin bool, script string) (*Process, *bufio.Reader) {
	t.Helper()
	p, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Stdin: stdin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(Ladder{}) })
	out := bufio.NewReader(p.Stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it said %q, %v, and to standard error %q", line, err, p.Stderr())
	}
	return p, out
}

const long = time.Minute // a step that must not be waited for

func TestStop(t *testing.T) {
	asked := func(p *Process) func() { return func() { fmt.Fprintln(p.Stdin, "stop") } }
	for _, tt := range []struct {
		name, script string
		ladder       func(*Process) Ladder
		exit         string
	}{
		{
			"it does what it is asked", "echo ready; read line; exit 3",
			func(p *Process) Ladder { return Ladder{Soft: asked(p), Wait: long} }, "exit status 3",
		},
		{
			"it ends with its input", "echo ready; cat; exit 4",
			func(*Process) Ladder { return Ladder{EOF: long} }, "exit status 4",
		},
		{
			"it does not end with its input", "echo ready; cat; sleep 1000",
			func(*Process) Ladder { return Ladder{Term: long} }, "signal: terminated",
		},
		{
			"it ignores SIGTERM", "trap '' TERM; echo ready; while :; do sleep 1000; done",
			func(*Process) Ladder { return Ladder{Term: time.Millisecond} }, "signal: killed",
		},
		{
			"its child ignores SIGTERM and has its output", "(trap '' TERM; echo ready; while :; do sleep 1000; done) & wait",
			func(*Process) Ladder { return Ladder{Term: 100 * time.Millisecond} }, "signal: terminated",
		},
		{
			"its grandchild outlives it", "(sh -c 'echo ready; sleep 1000' &) ; exit 0",
			func(p *Process) Ladder { <-p.Done(); return Ladder{Term: long} }, "exit status 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, out := begin(t, true, tt.script)
			start := time.Now()
			p.Stop(tt.ladder(p))
			if took := time.Since(start); took > long/2 {
				t.Errorf("it took %v", took)
			}
			if p.Exit() != tt.exit {
				t.Errorf("it ended with %q, want %q", p.Exit(), tt.exit)
			}
			if living, known := members(p.PID()); known && len(living) > 0 {
				t.Errorf("there are still %v", living)
			}
			if _, err := io.ReadAll(out); err != nil && !strings.Contains(err.Error(), "closed") {
				t.Errorf("its output ended with %v", err)
			}
		})
	}
}

// Who has left the group keeps the pipes open: that must hold nobody up.
func TestStopDoesNotWaitForPipes(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("there is no setsid")
	}
	p, out := begin(t, false, setsid+` sh -c 'echo $$ >&2; echo ready; exec sleep 1000' & wait`)
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.ReadAll(out) }()
	p.Stop(Ladder{Term: long})
	<-read
	var pid int
	if _, err := fmt.Sscan(p.Stderr(), &pid); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func TestStopFromSeveralGoroutines(t *testing.T) {
	p, _ := begin(t, false, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	done := make(chan struct{})
	for range 3 {
		go func() {
			p.Stop(Ladder{Term: time.Millisecond})
			if alive(p.PID()) {
				t.Error("it returned while somebody was alive")
			}
			done <- struct{}{}
		}()
	}
	for range 3 {
		<-done
	}
}

func TestStart(t *testing.T) {
	t.Setenv("TAPEDECK_TEST_SECRET", "x")
	dir := t.TempDir()
	p, err := Start(Spec{Path: "sh", Args: []string{"-c", "export -p; pwd; cat; echo oh dear >&2; exit 7"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout) // cat ends at once: there is no input
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	p.Stop(Ladder{})
	if strings.Contains(string(out), "SECRET") || strings.Contains(string(out), "HOME") {
		t.Errorf("it has our environment:\n%s", out)
	}
	if !strings.Contains(string(out), dir) {
		t.Errorf("it does not work in %s:\n%s", dir, out)
	}
	if p.Exit() != "exit status 7" || p.Success() || p.Stderr() != "oh dear\n" {
		t.Errorf("%q, %v, %q", p.Exit(), p.Success(), p.Stderr())
	}
	if _, err := Start(Spec{Path: "/does/not/exist"}); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestTail(t *testing.T) {
	tl := newTail(5)
	for _, s := range []string{"ab", "", "cde", "f", "0123456789", "xy"} {
		if n, err := tl.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if tl.String() != "789xy" {
		t.Errorf("%q", tl)
	}
}

func TestKillLeftover(t *testing.T) {
	started, host := Identity(os.Getpid())
	if started == "" || host == "" {
		t.Skip("this system does not tell")
	}
	p, _ := begin(t, false, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	started, host = Identity(p.PID())
	for _, tt := range []struct {
		name, started, host string
		pid                 int
	}{
		{"another life of the machine", started, "another", p.PID()},
		{"another process of that id", started + "1", host, p.PID()},
		{"nothing known", "", "", p.PID()},
		{"the first process", started, host, 1},
		{"everybody", started, host, 0},
		{"everybody else", started, host, -1},
	} {
		if killed, err := KillLeftover(tt.pid, tt.started, tt.host); killed || err != nil {
			t.Errorf("%s: %v, %v", tt.name, killed, err)
		}
	}
	if killed, err := KillLeftover(p.PID(), started, host); !killed || err != nil {
		t.Errorf("the process itself: %v, %v", killed, err)
	}
	<-p.Done()
	if p.Exit() != "signal: killed" {
		t.Errorf("it ended with %q", p.Exit())
	}
	if killed, err := KillLeftover(p.PID(), started, host); killed || err != nil {
		t.Errorf("again: %v, %v", killed, err)
	}
}

// The leader is gone, and what it started is not.
func TestKillLeftoverWithoutLeader(t *testing.T) {
	if _, known := members(os.Getpid()); !known {
		t.Skip("this system does not tell who is in a group")
	}
	p, _ := begin(t, true, "sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & read line; exit 0")
	started, host := Identity(p.PID())
	fmt.Fprintln(p.Stdin)
	<-p.Done()
	if killed, err := KillLeftover(p.PID(), started+"0", host); killed || err != nil {
		t.Errorf("those who were there before: %v, %v", killed, err)
	}
	if killed, err := KillLeftover(p.PID(), started, host); !killed || err != nil {
		t.Errorf("%v, %v", killed, err)
	}
	if alive(p.PID()) {
		t.Error("somebody is left")
	}
}
