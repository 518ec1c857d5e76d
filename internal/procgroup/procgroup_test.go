//go:build linux

package procgroup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// begin starts a shell and waits until it prints "ready".
func begin(t *testing.T, stdin bool, script string) (*Process, *bufio.Reader) {
	t.Helper()
	p, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, Stdin: stdin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(Ladder{}) })
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(p.Stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it said %q, %v, and to standard error %q", line, err, p.Stderr())
	}
	return p, out
}

const long = 10 * time.Minute // the limit of a step for which Stop must not wait

func TestStop(t *testing.T) {
	asked := func(p *Process) func() { return func() { fmt.Fprintln(p.Stdin, "stop") } }
	for _, tt := range []struct {
		name, script string
		ladder       func(*Process) Ladder
		exit         string
	}{
		{
			"it obeys Soft", "echo ready; read line; exit 3",
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
			func(*Process) Ladder { return Ladder{Term: 2 * time.Second} }, "signal: terminated",
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
			if n := marked(p); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if _, err := io.ReadAll(out); err != nil && !strings.Contains(err.Error(), "closed") {
				t.Errorf("its output ended with %v", err)
			}
		})
	}
}

func TestStopFromSeveralGoroutines(t *testing.T) {
	p, _ := begin(t, false, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	done := make(chan struct{})
	for range 3 {
		go func() {
			p.Stop(Ladder{Term: time.Millisecond})
			if n := marked(p); n > 0 {
				t.Errorf("it returned while %d processes were alive", n)
			}
			done <- struct{}{}
		}()
	}
	for range 3 {
		<-done
	}
}

func TestStart(t *testing.T) {
	t.Setenv("DECK_TEST_SECRET", "x")
	dir := t.TempDir()
	p, err := Start(Spec{Path: "sh", Args: []string{"-c", "export -p; pwd; cat; echo oh dear >&2; exit 7"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout) // cat ends at once: there is no input
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	p.Stop(Ladder{})
	if strings.Contains(string(out), "SECRET") || strings.Contains(string(out), "HOME") {
		t.Errorf("it has the server's environment:\n%s", out)
	}
	if !strings.Contains(string(out), dir) {
		t.Errorf("it does not work in %s:\n%s", dir, out)
	}
	if p.Exit() != "exit status 7" || p.Success() || p.Stderr() != "oh dear\n" {
		t.Errorf("%q, %v, %q", p.Exit(), p.Success(), p.Stderr())
	}
	if _, err := Start(Spec{Path: "/does/not/exist"}); err == nil {
		t.Error("a program that does not exist was started")
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

// TestLastWords: what a program wrote just before its end is not missing. A process that
// keeps standard error open delays nobody for longer than the limit.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, keptOpen := range []bool{false, true} {
			p := &Process{stderr: newTail(0), stderrEnded: make(chan struct{}), done: make(chan struct{}), exit: exit{text: "exit status 3"}}
			if got := p.LastWords(time.Hour); got != "" {
				t.Errorf("while it runs: %q", got)
			}
			close(p.done)
			go func() {
				time.Sleep(100 * time.Millisecond) // the system has not run the reader yet
				_, _ = p.stderr.Write([]byte("out of memory\n"))
				if !keptOpen {
					close(p.stderrEnded)
				}
			}()
			begin := time.Now()
			if got := p.LastWords(time.Second); got != "out of memory\n" {
				t.Errorf("kept open %v: %q", keptOpen, got)
			}
			if waited := time.Since(begin); (waited == time.Second) != keptOpen {
				t.Errorf("kept open %v: it waited %v", keptOpen, waited)
			}
		}
	})
}
