// Package testserver builds the real program once and runs it as a process, so
// that tests meet what users meet, kill -9 included.
package testserver

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary returns the path of the program. TAPEDECK_BIN names one that exists;
// without it the program is built, once in a test process.
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

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tapedeck-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "tapedeck")
	cmd := exec.Command("go", "build", "-o", path, "github.com/tapedeck/tapedeck/cmd/tapedeck")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// Work returns the folder below which the agents of a server work.
func Work(data string) string { return data + ".work" }

// A Server is a running "tapedeck serve".
type Server struct {
	URL  string
	PID  int
	Live string // the live session of the demo

	cmd    *exec.Cmd
	stderr *lockedBuffer
	gone   chan struct{} // closed when the process has been waited for
}

// Start starts the program on a data folder, on a port of its own unless args
// name one, and waits until it serves. It is killed when the test ends.
func Start(t testing.TB, data string, args ...string) *Server {
	t.Helper()
	all := []string{"serve", "--json", "--data", data}
	if !strings.Contains(strings.Join(args, " "), "--listen") {
		all = append(all, "--listen", "127.0.0.1:0")
	}
	s := &Server{stderr: &lockedBuffer{}, gone: make(chan struct{})}
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
	t.Cleanup(s.Kill)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	go func() { // only now: waiting closes the pipe
		_ = s.cmd.Wait()
		close(s.gone)
	}()
	if err != nil || json.Unmarshal(line, s) != nil {
		s.Kill()
		t.Fatalf("the server did not start: %v\n%s%s", err, line, s.stderr)
	}
	return s
}

// Kill kills the process with -9 and waits until it is gone. It may be called
// again, and by several goroutines.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// Dump ends the process, and has it write what its goroutines do to its log.
func (s *Server) Dump() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.gone
}

// Ended waits until the process ends by itself, and returns its exit code.
func (s *Server) Ended(t testing.TB) int {
	t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { s.Dump() })
	defer timer.Stop()
	<-s.gone
	return s.cmd.ProcessState.ExitCode()
}

// Stop asks the process to end, as Ctrl-C does, and returns its exit code.
func (s *Server) Stop(t testing.TB) int {
	t.Helper()
	return s.End(t, syscall.SIGINT)
}

// End sends the process a signal, waits for its end, and returns its exit code.
func (s *Server) End(t testing.TB, sig os.Signal) int {
	t.Helper()
	_ = s.cmd.Process.Signal(sig)
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	<-s.gone
	return s.cmd.ProcessState.ExitCode()
}

// Log returns what the process has written to its error output.
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
