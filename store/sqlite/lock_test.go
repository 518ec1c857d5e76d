package sqlite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/tapedeck/tapedeck"
)

// The lock of a killed process may stay for a moment with a process that it was
// starting; then the store waits. The lock of a living process is refused at once.
func TestLockOfADeadProcess(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"dead": c.Process.Pid, "alive": os.Getpid()} {
		dir := t.TempDir()
		held := flock.New(filepath.Join(dir, lockName))
		if ok, err := held.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		b, err := json.Marshal(holder{PID: pid, Command: "tapedeck serve"})
		if err == nil {
			err = os.WriteFile(held.Path(), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		release := time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() })
		l, err := takeLock(dir)
		if pid == os.Getpid() {
			release.Stop()
			_ = held.Close()
			if tapedeck.KindOf(err) != tapedeck.Conflict {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l.Release()
	}
}

// The same relative path in two working directories names two data folders: two
// processes can serve them at the same time.
func TestLockOfRelativePaths(t *testing.T) {
	for range 2 {
		t.Chdir(t.TempDir())
		if err := os.Mkdir("data", 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := takeLock("data")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Release)
	}
}
