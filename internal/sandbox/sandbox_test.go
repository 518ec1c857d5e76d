//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
)

// needSandbox skips a test where the sandbox cannot be had.
func needSandbox(t *testing.T) {
	t.Helper()
	if _, err := works(); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
}

// start begins a shell in the sandbox, in the folder dir.
func start(t *testing.T, p *Policy, dir, script string) *procgroup.Process {
	t.Helper()
	needSandbox(t)
	spec, err := p.Confine(procgroup.Spec{
		Path: "/bin/bash", Args: []string{"-c", script}, Dir: dir, Tail: 1 << 20,
		Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/of-nobody", "ALLOWED=1", "KEY=canary", "TMPDIR=/elsewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	proc, err := procgroup.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proc.Stop(procgroup.Ladder{}) })
	if err := proc.Begin(nil); err != nil {
		t.Fatal(err)
	}
	return proc
}

// run runs a shell in the sandbox to its end and returns all its output.
func run(t *testing.T, p *Policy, dir, script string) (out, exit string) {
	t.Helper()
	proc := start(t, p, dir, "exec 2>&1\n"+script)
	b, err := io.ReadAll(proc.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	<-proc.Done()
	proc.Stop(procgroup.Ladder{})
	return string(b) + proc.Stderr(), proc.Exit()
}

// A place has a folder of an agent, and beside it what the agent must not reach.
type place struct{ root, own, data, others string }

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	p := place{root, filepath.Join(root, "work", "mine"), filepath.Join(root, "data"), filepath.Join(root, "work")}
	for path, text := range map[string]string{"data/server.json": "canary", "tokens": "canary", "work/theirs/file": "canary", "shown": "shown", "work/mine/here": "here"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// policy lets a program read everything around its folder, so that only Hidden and Others
// keep it from the rest.
func (p *place) policy() *Policy {
	return &Policy{Readable: []string{p.root}, Hidden: []string{p.data, filepath.Join(p.root, "tokens")}, Others: p.others}
}

// TestReads: each command prints the word canary if the program can read something that it
// must not.
func TestReads(t *testing.T) {
	t.Setenv("HIDDEN_CANARY", "1")
	p := newPlace(t)
	if err := os.Symlink(p.data, filepath.Join(p.own, "link")); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		"cat ../../data/server.json", "cat link/server.json", "cat ../../tokens", "cat ../theirs/file",
		"find / -path /usr -prune -o -path /proc -prune -o -name server.json -type f -size +0 -print -quit 2>/dev/null | grep -q . && echo canary",
		"cat /proc/*/environ | tr '\\0' '\\n' | grep ^HIDDEN_CANARY && echo canary", "cat /proc/*/cmdline | tr '\\0' '\\n' | grep -c 'test[.]run' | grep -v 0 && echo canary",
		"umount ../../data && cat ../../data/server.json", "unshare -Urm sh -c 'umount -l " + p.data + "; cat " + p.data + "/server.json'",
		"ls /home /root /var /run /srv /etc/shadow 2>/dev/null | grep -v ':$' | grep -v '^$' | grep -v of-nobody && echo canary",
		"exec 3<>/dev/tty && echo canary", "for fd in /proc/self/fd/*; do readlink $fd; done | grep -v 'pipe:\\|/dev/null\\|/proc/' && echo canary",
	} {
		if out, _ := run(t, p.policy(), p.own, script); strings.Contains(out, "canary") {
			t.Errorf("%s\nprinted %s", script, out)
		}
	}
	if out, exit := run(t, p.policy(), p.own, "cat here ../../shown"); out != "hereshown" || exit != "exit status 0" {
		t.Errorf("what it may read is %q (%s)", out, exit)
	}
}

// TestWrites: no file outside of the folder changes.
func TestWrites(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(p.root, "more")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	policy := p.policy()
	policy.Writable = []string{other}
	out, _ := run(t, policy, p.own, `
for f in ../../new ../../shown ../../data/new ../../tokens ../new ../theirs/new /new /usr/new /etc/new /dev/new /proc/sys/kernel/hostname /proc/self/oom_score_adj; do
  (echo canary > $f) 2>/dev/null && echo "wrote $f"
done
mount -t tmpfs none /usr && echo "mounted"
mknod disk b 8 0 && echo "has a device"
echo mine > mine && echo more > ../../more/new && echo tmp > /tmp/x && echo home > $HOME/x && echo shm > /dev/shm/x && echo done`)
	if !strings.HasSuffix(out, "done\n") || strings.Contains(out, "wrote") || strings.Contains(out, "mounted") || strings.Contains(out, "has a device") {
		t.Errorf("it printed %s", out)
	}
	for _, path := range []string{"shown", "tokens", "data/server.json"} {
		if b, err := os.ReadFile(filepath.Join(p.root, path)); err != nil || path == "shown" && string(b) != "shown" || path != "shown" && string(b) != "canary" {
			t.Errorf("%s is now %q, %v", path, b, err)
		}
	}
	for _, path := range []string{"work/mine/mine", "more/new"} {
		if _, err := os.Stat(filepath.Join(p.root, path)); err != nil {
			t.Error(err)
		}
	}
}

// TestNetwork: a program reaches a port of the machine only if that is allowed.
func TestNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, allowed := range []bool{false, true} {
		out, _ := run(t, &Policy{Network: allowed}, t.TempDir(), "exec 3<>/dev/tcp/127.0.0.1/"+port+" && echo reached")
		if strings.Contains(out, "reached") != allowed {
			t.Errorf("allowed %v: %s", allowed, out)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HIDDEN_CANARY", "1")
	for _, tt := range []struct {
		list []string
		want string
	}{{nil, "ALLOWED HOME KEY PATH TMPDIR"}, {[]string{"ALLOWED"}, "ALLOWED HOME PATH TMPDIR"}, {[]string{}, "HOME PATH TMPDIR"}} {
		out, _ := run(t, &Policy{Env: tt.list}, t.TempDir(), "env | cut -d= -f1 | grep -v '^PWD$\\|^SHLVL$\\|^_$\\|^OLDPWD$\\|^"+procgroup.Mark+"$' | sort | tr '\\n' ' '")
		if strings.TrimSpace(out) != tt.want {
			t.Errorf("with %v it has %s", tt.list, out)
		}
	}
}

// TestLimits: a program that wants more than it may have is ended with everything that it
// started, and the reason says which limit it was.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name, script, exit string
		limits             procgroup.Limits
		file               int64
	}{
		{"memory of one process", "head -c 300M /dev/zero | tail -c 200M >/dev/null || exit 7", "exit status 7 or killed", procgroup.Limits{Memory: 100 << 20}, 0},
		{"memory of several", "for i in 1 2 3 4 5; do (head -c 60M /dev/zero | tail -c 60M | sleep 1000) & done; wait", "killed: it used more than 100 MiB of memory", procgroup.Limits{Memory: 100 << 20}, 0},
		// What starts processes is bounded, so that a limit that fails does not end the machine.
		{"processes", "for i in $(seq 2000); do sleep 1000 & done; wait", "killed: it had more than 50 processes", procgroup.Limits{Processes: 50}, 0},
		{"a fork bomb in sessions of its own", "b() { test $1 -gt 9 && return; setsid bash -c 'sleep 1000' & b $(($1+1)) | b $(($1+1)) & }; b 0; sleep 1000", "killed: it had more than 50 processes", procgroup.Limits{Processes: 50}, 0},
		{"output", "yes", "killed: its output is longer than 1 MiB", procgroup.Limits{Output: 1 << 20}, 0},
		{"error output", "yes >&2", "killed: its output is longer than 1 MiB", procgroup.Limits{Output: 1 << 20}, 0},
		{"time", "trap '' TERM INT HUP; setsid sleep 1000", "killed: it ran longer than 100ms", procgroup.Limits{Time: 100 * time.Millisecond}, 0},
		{"a file", "trap '' XFSZ; head -c 10M /dev/zero > file; test $(stat -c %s file) = 1048576 && exit 7", "exit status 7", procgroup.Limits{}, 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proc := start(t, &Policy{Limits: tt.limits, File: tt.file}, t.TempDir(), tt.script)
			_, _ = io.Copy(io.Discard, proc.Stdout)
			<-proc.Done()
			proc.Stop(procgroup.Ladder{})
			got := proc.Exit()
			if tt.exit == "exit status 7 or killed" && (got == "exit status 7" || strings.HasPrefix(got, "killed: it used more than 100 MiB")) {
				return // either limit may be reached first
			}
			if got != tt.exit {
				t.Errorf("it ended with %q and said %.300s", got, proc.Stderr())
			}
		})
	}
}

// hiding is a process in a session of its own, without the mark in its environment, that
// ignores all signals that can be ignored. It writes to the folder as long as it lives.
const hiding = `setsid env -i bash -c 'trap "" TERM INT HUP; exec 0</dev/null >/dev/null 2>&1; while :; do date +%N > alive; sleep 0.01; done' & while ! test -e alive; do sleep 0.01; done; echo ready; wait`

// TestEndsWithItsKeeper kills the keeper, as if it died with the server: nothing of the
// program lives on, not even a process that hides.
func TestEndsWithItsKeeper(t *testing.T) {
	dir := t.TempDir()
	proc := start(t, &Policy{}, dir, hiding)
	if _, err := proc.Stdout.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(proc.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return !writes(t, dir) })
}

// TestStop: a program that is stopped ends with everything that it started.
func TestStop(t *testing.T) {
	dir := t.TempDir()
	proc := start(t, &Policy{}, dir, hiding)
	if _, err := proc.Stdout.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	proc.Stop(procgroup.Ladder{Term: 10 * time.Millisecond})
	if writes(t, dir) {
		t.Error("it still writes")
	}
}

// writes reports whether a process still writes the file of [hiding].
func writes(t *testing.T, dir string) bool {
	t.Helper()
	file := filepath.Join(dir, "alive")
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		<-time.After(10 * time.Millisecond) // the writer needs time, and no signal says that there is none
		if b, err := os.ReadFile(file); err != nil || string(b) != "none" {
			return true
		}
	}
	return false
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("never")
		}
	}
}

// TestSignals: a program in a sandbox gets the signals that ask it to end, and not only
// SIGKILL with its sandbox.
func TestSignals(t *testing.T) {
	for name, send := range map[string]func(*procgroup.Process){
		"INT":  func(p *procgroup.Process) { p.Interrupt() },
		"TERM": func(p *procgroup.Process) { p.Stop(procgroup.Ladder{Term: time.Minute}) },
	} {
		proc := start(t, &Policy{}, t.TempDir(), "trap 'exit 7' "+name+"; echo ready; while :; do sleep 0.01; done")
		if _, err := proc.Stdout.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		send(proc)
		<-proc.Done()
		if got := proc.Exit(); got != "exit status 7" {
			t.Errorf("after %s: %s", name, got)
		}
	}
}

// TestMissing: without a sandbox that works nothing is started, and the error says what to
// do.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, tt := range []struct{ script, message, hint string }{
		{"", "the sandbox bubblewrap is not installed", "apt-get install bubblewrap"},
		{"#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n", "does not work here: bwrap: No permissions to create a new namespace", "user namespaces"},
	} {
		if tt.script != "" {
			if err := os.WriteFile(filepath.Join(dir, program), []byte(tt.script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_, err := (&Policy{}).Confine(procgroup.Spec{Path: "/bin/sh"})
		var e *tapedeck.Error
		if !errors.As(err, &e) || e.Kind != tapedeck.Unavailable || !strings.Contains(e.Message, tt.message) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestInvisible: a program that the sandbox does not show is refused with the folder that
// has it.
func TestInvisible(t *testing.T) {
	needSandbox(t)
	dir := t.TempDir()
	tool := filepath.Join(dir, "agent")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho it runs\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var e *tapedeck.Error
	if err := (&Policy{}).Available(tool); !errors.As(err, &e) || !strings.Contains(e.Hint, dir) {
		t.Errorf("the error is %v", err)
	}
	p := &Policy{Readable: []string{dir}}
	if err := p.Available(tool); err != nil {
		t.Error(err)
	}
	if out, _ := run(t, p, t.TempDir(), tool); out != "it runs\n" {
		t.Errorf("it printed %q", out)
	}
}

// TestCheck: no folder that the agent may write holds what is hidden, or is in it.
func TestCheck(t *testing.T) {
	p := newPlace(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.root, link); err != nil {
		t.Fatal(err)
	}
	for folder, ok := range map[string]bool{
		p.own: true, p.root: false, p.data: false, filepath.Join(p.data, "inside"): false, p.others: false, link: false, p.root + "x": true, "": true,
	} {
		if err := p.policy().Check(folder); (err == nil) != ok {
			t.Errorf("%q: %v", folder, err)
		}
	}
	wide := p.policy()
	wide.Writable = []string{p.root}
	if wide.Check(p.own) == nil {
		t.Error("a writable folder has the data folder in it")
	}
	if err := (*Policy)(nil).Check(p.data); err != nil {
		t.Error(err)
	}
}

// TestUnconfined: without a policy nothing changes.
func TestUnconfined(t *testing.T) {
	spec := procgroup.Spec{Path: "/bin/sh", Dir: "/tmp"}
	got, err := (*Policy)(nil).Confine(spec)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(spec) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Log("bubblewrap is not installed")
	}
}
