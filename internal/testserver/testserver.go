// Package testserver builds the real program once and runs it as a process, so that
// tests use it as users do, and can end it with kill -9.
package testserver

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary returns the path of the program: that in TAPEDECK_BIN, otherwise one that is
// built once per test process.
func Binary(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("TAPEDECK_BIN"); bin != "" {
		return bin
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds the program into a folder that all test processes of the user share. No
// process can remove its program, because nothing is called when the last test has ended.
// So the folder of a program is its hash, and programs of another day are removed.
var build = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprint("tapedeck-bin-", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // fails if it is somebody else's
		return "", err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range old {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	own, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(own)
	built := filepath.Join(own, "tapedeck")
	cmd := exec.Command("go", "build", "-o", built, "github.com/tapedeck/tapedeck/cmd/tapedeck")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	shared := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256(program)))
	if err := os.Rename(own, shared); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	now := time.Now() // an older one is the same program, which nobody may remove now
	return filepath.Join(shared, "tapedeck"), os.Chtimes(shared, now, now)
})

// Work returns the folder for agents (TAPEDECK_WORK) of the server with this data folder.
func Work(data string) string { return data + ".work" }

// A Server is a running "tapedeck serve".
type Server struct {
	URL  string
	PID  int
	Live string // the live session of the demo

	cmd    *exec.Cmd
	stderr *lockedBuffer
	exited chan struct{} // closed after the process has ended
}

// Start starts the program on a data folder and waits until it serves. It uses a free
// port, unless args have --listen. The process is killed when the test ends.
func Start(t testing.TB, data string, args ...string) *Server {
	t.Helper()
	all := []string{"serve", "--json", "--data", data}
	if !strings.Contains(strings.Join(args, " "), "--listen") {
		all = append(all, "--listen", "127.0.0.1:0")
	}
	s := &Server{stderr: &lockedBuffer{}, exited: make(chan struct{})}
	s.cmd = exec.Command(Binary(t), append(all, args...)...)
	s.cmd.Env = append(os.Environ(), "TAPEDECK_WORK="+Work(data))
	s.cmd.Stderr = s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if strings.Contains(s.Log(), "WARNING: DATA RACE") { // TAPEDECK_BIN is built with -race
			t.Errorf("the race detector found something in the server:\n%s", s.Log())
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	go func() { // not earlier, because Wait closes the pipe
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	if err != nil || json.Unmarshal(line, s) != nil {
		s.Kill()
		t.Fatalf("the server did not start: %v\n%s%s", err, line, s.stderr)
	}
	return s
}

// Kill kills the process with -9 and waits for its end. It may be called several
// times and by several goroutines.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// patience is how long a process may take to end. It only keeps a test from hanging: on a
// busy machine a clean end can take many seconds.
const patience = 2 * time.Minute

// Dump ends the process with SIGQUIT, which writes the stacks of its goroutines to its
// log.
func (s *Server) Dump() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.exited
}

// Ended waits until the process ends by itself and returns its exit code.
func (s *Server) Ended(t testing.TB) int {
	t.Helper()
	timer := time.AfterFunc(patience, func() { s.Dump() })
	defer timer.Stop()
	<-s.exited
	return s.cmd.ProcessState.ExitCode()
}

// Stop ends the process like Ctrl-C and returns its exit code.
func (s *Server) Stop(t testing.TB) int {
	t.Helper()
	return s.End(t, syscall.SIGINT)
}

// End sends a signal to the process, waits for its end and returns its exit code.
func (s *Server) End(t testing.TB, sig os.Signal) int {
	t.Helper()
	_ = s.cmd.Process.Signal(sig)
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.exited
	return s.cmd.ProcessState.ExitCode()
}

// Log returns the standard error of the process so far.
func (s *Server) Log() string { return s.stderr.String() }

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
