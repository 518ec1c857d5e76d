package crash

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestDiskFull fills a real, small disk under the running server. Appends fail
// with "unavailable" and nothing of them is kept, reads go on, and when there is
// space again so do appends.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(disk, "data")
	s := testserver.Start(t, data)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), tapedeck.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	event := `{"type":"test.note","data":{"pad":"` + strings.Repeat("x", 64<<10) + `"}}`
	acked := fill(t, c, event)
	t.Logf("the disk was full after %d events", acked)
	check := func(want int64) {
		t.Helper()
		p, err := c.Page(t.Context(), "s", client.PageOptions{})
		if err != nil || p.Head != want {
			t.Fatalf("head %d, %v; want %d", p.Head, err, want)
		}
	}
	check(acked + 1) // session.created is the first
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	done, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{})
	if err != nil || done.First != acked+1 {
		t.Fatalf("after there was space again: %+v, %v; want offset %d", done, err, acked+1)
	}
	check(acked + 2)
	s.Kill()
	s = testserver.Start(t, data)
	if c, err = client.New(s.URL); err != nil {
		t.Fatal(err)
	}
	check(acked + 2)
}

// fill appends until the server says that it cannot, three times in a row.
func fill(t *testing.T, c *client.Client, event string) (acked int64) {
	t.Helper()
	for failed := 0; failed < 3; {
		_, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{})
		switch tapedeck.KindOf(err) {
		case "":
			if failed > 0 {
				t.Log("an append got through in between")
			}
			acked++
			failed = 0
		case tapedeck.Unavailable:
			if failed++; !strings.Contains(err.Error(), "space") {
				t.Errorf("the error does not say why: %v", err)
			}
		default:
			t.Fatal(err)
		}
		if acked > 1000 {
			t.Fatal("the disk never gets full")
		}
	}
	return acked
}
