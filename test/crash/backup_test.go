package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestBackupKilled kills backups, and sometimes the server, while writers append. After
// each kill the backup is sound. The last backup, which is not killed, has every event that
// was acknowledged before it began.
func TestBackupKilled(t *testing.T) {
	testserver.Binary(t) // builds it before the first command, which has a time-out
	dir := t.TempDir()
	data, dest := filepath.Join(dir, "data"), filepath.Join(dir, "backup")
	if out, ok := command(t, "", "create", "notes", "--data", data); !ok {
		t.Fatal(out)
	}
	s := testserver.Start(t, data)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	n, killed := *rounds, 0
	if testing.Short() {
		n = min(n, 3)
	}
	w := &backedUp{t: t}
	for i := 0; i < n || killed == 0 && i < maxRounds; i++ { // on a fast machine, each of the first kills may come too late
		w.begin(s.URL)
		began := time.Now()
		if out, ok := command(t, "", "backup", dest, "--data", data); i == 0 && !ok {
			t.Fatal(out)
		}
		if killBackup(t, data, dest, time.Duration(rng.Int64N(int64(time.Since(began))))) {
			killed++
		}
		if i%2 == 1 {
			s.Kill()
		}
		w.end()
		if out, ok := command(t, "", "backup", dest, "--verify"); !ok {
			t.Fatalf("after %d kills: %s", killed, out)
		}
		if i%2 == 1 {
			s = testserver.Start(t, data)
		}
	}
	w.begin(s.URL)
	acked := w.acked.Load()
	if out, ok := command(t, "", "backup", dest, "--data", data); !ok {
		t.Fatal(out)
	}
	w.end()
	if killed == 0 || acked < int64(n) {
		t.Errorf("%d backups were killed, and %d appends acknowledged; the test proves nothing", killed, acked)
	}
	restored := filepath.Join(dir, "restored")
	if out, ok := command(t, "", "restore", dest, "--to", restored); !ok {
		t.Fatal(out)
	}
	w.compare(restored, data, acked)
	t.Logf("%d backups killed, %d appends acknowledged", killed, acked)
}

// maxRounds is how many backups are made until one is killed.
const maxRounds = 100

// killBackup starts a backup and kills it after a time. It reports whether the backup was
// still running.
func killBackup(t *testing.T, data, dest string, after time.Duration) bool {
	t.Helper()
	cmd := exec.Command(testserver.Binary(t), "backup", dest, "--data", data)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait() != nil
}

// backedUp is a writer of one session.
type backedUp struct {
	t     *testing.T
	acked atomic.Int64 // number of the newest append that was acknowledged
	sent  int64
	stop  context.CancelFunc
	wait  sync.WaitGroup
}

func (w *backedUp) begin(url string) {
	c, err := client.New(url)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop = stop
	first := make(chan struct{})
	w.wait.Go(func() {
		defer c.Close()
		begun := sync.OnceFunc(func() { close(first) })
		defer begun()
		for ctx.Err() == nil {
			w.sent++
			text := fmt.Sprintf("number %d %s", w.sent, strings.Repeat("x", 2000))
			line := fmt.Sprintf(`{"type":"message.added","data":{"message":{"id":"m%d","role":"user","content":%q}}}`, w.sent, text)
			if _, err := c.Append(ctx, "notes", strings.NewReader(line), client.AppendOptions{}); err != nil {
				return // the server was killed
			}
			w.acked.Store(w.sent)
			begun()
		}
	})
	<-first
}

func (w *backedUp) end() {
	w.stop()
	w.wait.Wait()
}

// compare compares the restored session with the one in the folder, up to where the former
// ends, and looks for the acknowledged appends.
func (w *backedUp) compare(restored, data string, acked int64) {
	w.t.Helper()
	if out, ok := command(w.t, "", "verify", "--data", restored); !ok {
		w.t.Error(out)
	}
	have, ok1 := command(w.t, "", "export", "notes", "--format", "ndjson", "--data", restored)
	want, ok2 := command(w.t, "", "export", "notes", "--format", "ndjson", "--data", data)
	if !ok1 || !ok2 {
		w.t.Fatal(have, want)
	}
	lines, all := messages(have), messages(want)
	if int64(len(lines)) < acked || len(lines) > len(all) {
		w.t.Fatalf("%d messages, of %d", len(lines), len(all))
	}
	for i, line := range lines {
		if line != all[i] {
			w.t.Fatalf("message %d is %.200s, want %.200s", i, line, all[i])
		}
	}
	if !strings.Contains(have, fmt.Sprintf("number %d x", acked)) {
		w.t.Errorf("append %d was acknowledged before the backup began, and is not in it", acked)
	}
}

// messages returns the lines of an export that have messages.
func messages(export string) []string {
	return slices.DeleteFunc(strings.Split(export, "\n"), func(line string) bool { return !strings.Contains(line, `"message.added"`) })
}
