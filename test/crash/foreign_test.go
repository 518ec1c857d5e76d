package crash

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// command runs the program like a user and returns its output and whether it
// succeeded.
func command(t *testing.T, stdin string, args ...string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that a hanging program fails the test
	defer cancel()
	cmd := exec.CommandContext(ctx, testserver.Binary(t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// withNotes creates a data folder with the session notes.
func withNotes(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if out, ok := command(t, "", "create", "notes", "--data", data); !ok {
		t.Fatal(out)
	}
	return data
}

func has(t *testing.T, url, session string) bool {
	t.Helper()
	c, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Session(t.Context(), session)
	if err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Fatal(err)
	}
	return err == nil
}

// TestForeignServer: the server of a folder was killed, and the server of another folder
// has its port now. A command for the first folder does not reach the second one.
func TestForeignServer(t *testing.T) {
	mine, other := withNotes(t), withNotes(t)
	killed := testserver.Start(t, mine)
	killed.Kill()
	foreign := testserver.Start(t, other, "--listen", strings.TrimPrefix(killed.URL, "http://"))
	if out, ok := command(t, "", "delete", "notes", "--data", mine, "--yes"); !ok {
		t.Error(out)
	}
	if !has(t, foreign.URL, "notes") {
		t.Error("the session of the other folder was deleted")
	}
	if out, _ := command(t, "", "ls", "--data", mine); strings.Contains(out, "notes") {
		t.Errorf("the session of the folder is still there: %s", out)
	}
}

// TestCopiedFolder: a copy of a folder has the server.json of a running server. A command
// for the copy does not reach that server.
func TestCopiedFolder(t *testing.T) {
	data := withNotes(t)
	s := testserver.Start(t, data)
	twin := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(twin, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	if out, ok := command(t, "", "delete", "notes", "--data", twin, "--yes"); !ok {
		t.Error(out)
	}
	if !has(t, s.URL, "notes") {
		t.Error("the session of the original folder was deleted")
	}
}

// TestNotATapedeck: a program that answers every request with 200 is not taken for a
// server, whether server.json names it or the user does.
func TestNotATapedeck(t *testing.T) {
	var posts atomic.Int64
	program := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
	}))
	defer program.Close()
	data := withNotes(t)
	note, _ := json.Marshal(map[string]any{"url": program.URL, "pid": os.Getpid(), "instance": "srv_1"})
	if err := os.WriteFile(filepath.Join(data, "server.json"), note, 0o600); err != nil {
		t.Fatal(err)
	}
	event := `{"type":"test.note","data":{}}`
	lock, err := sqlite.TakeLock(data)
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := command(t, event, "append", "notes", "--data", data); ok || !strings.Contains(out, "does not answer") {
		t.Errorf("with the folder in use: %s", out)
	}
	lock.Release()
	if out, ok := command(t, event, "append", "notes", "--url", program.URL); ok || !strings.Contains(out, "there is no Tapedeck server") {
		t.Errorf("with --url: %s", out)
	}
	if out, ok := command(t, event, "append", "notes", "--data", data); !ok || !strings.Contains(out, "appended 1 event") {
		t.Errorf("with the folder free: %s", out)
	}
	if n := posts.Load(); n != 0 {
		t.Errorf("%d requests were sent to a foreign program", n)
	}
}

// TestStoppedServer: a stopped process accepts connections but does not answer. A
// command soon says so.
func TestStoppedServer(t *testing.T) {
	data := withNotes(t)
	s := testserver.Start(t, data)
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, server := range [][]string{{"--data", data}, {"--url", s.URL}} {
		began := time.Now()
		out, ok := command(t, "", append([]string{"ls"}, server...)...)
		if ok || !strings.Contains(out, "does not answer") || !strings.Contains(out, "kill -CONT") {
			t.Errorf("%s: %s", server[0], out)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %s", server[0], took)
		}
	}
	_ = syscall.Kill(s.PID, syscall.SIGCONT)
	if out, ok := command(t, "", "ls", "--data", data); !ok || !strings.Contains(out, "notes") {
		t.Errorf("afterwards: %s", out)
	}
}
