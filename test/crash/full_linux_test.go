package crash

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestDiskFull fills a real, small disk under a running server. Appends fail with
// "unavailable" and store nothing; reads work. When there is space again, appends work,
// too.
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t, 8)
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
	if _, err := c.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
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
		t.Fatalf("when there was space again: %+v, %v; want offset %d", done, err, acked+1)
	}
	check(acked + 2)
	s.Kill()
	s = testserver.Start(t, data)
	if c, err = client.New(s.URL); err != nil {
		t.Fatal(err)
	}
	check(acked + 2)
}

// fill appends until the server refuses three times in a row.
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

// TestStartOnFullDisk starts the program on a full disk. The server, and commands that
// open the folder themselves, can read the sessions. The server reports that it is not
// ready, and why. It becomes ready by itself when there is space again.
func TestStartOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 8)
	data := filepath.Join(disk, "data")
	s := testserver.Start(t, data)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), api.NewSession{ID: "s", Title: "Full of pears"}); err != nil {
		t.Fatal(err)
	}
	event := `{"type":"message.added","data":{"message":{"id":"m","role":"user","content":"about pears"}}}`
	if _, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	ballast := filepath.Join(disk, "ballast")
	fillDisk(t, ballast)

	for _, args := range [][]string{{"ls"}, {"show", "s"}, {"export", "s", "--format", "json", "-o", "-"}} {
		out, err := exec.CommandContext(t.Context(), testserver.Binary(t), append(args, "--data", data)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "pears") {
			t.Errorf("%v on a full disk: %v\n%s", args, err, out)
		}
	}
	s = testserver.Start(t, data)
	if c, err = client.New(s.URL); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Page(t.Context(), "s", client.PageOptions{}); err != nil || p.Head != 2 {
		t.Errorf("reading on a full disk: head %d, %v", p.Head, err)
	}
	more := filepath.Join(disk, "more") // the commands gave the space of the write-ahead log back
	fillDisk(t, more)
	if _, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("appending on a full disk: %v", err)
	}
	if status, text := readyz(t, s.URL); status != http.StatusServiceUnavailable || !strings.Contains(text, "no space") {
		t.Errorf("readyz on a full disk: %d %s", status, text)
	}
	if err := errors.Join(os.Remove(ballast), os.Remove(more)); err != nil {
		t.Fatal(err)
	}
	if status, text := readyz(t, s.URL); status != http.StatusOK {
		t.Errorf("readyz with space again: %d %s", status, text)
	}
	if _, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{}); err != nil {
		t.Errorf("appending with space again: %v", err)
	}
	awaitFile(t, filepath.Join(data, "server.json")) // so that other commands find the server
	if code := s.Stop(t); code != 0 {
		t.Errorf("it ended with %d\n%s", code, s.Log())
	}
}

// TestCommandsOnFullDisk fills a disk to its last byte. Commands that read succeed, with
// a server and without one. A server that starts there reports at once that it is not
// ready, can be found by commands, and leaves no file behind.
func TestCommandsOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 8)
	data := filepath.Join(disk, "data")
	s := testserver.Start(t, data)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), api.NewSession{ID: "s", Title: "Full of pears"}); err != nil {
		t.Fatal(err)
	}
	fill(t, c, `{"type":"test.note","data":{"pad":"`+strings.Repeat("x", 64<<10)+`"}}`)
	s.Kill()
	_ = os.Remove(filepath.Join(data, "server.json"))
	fillDisk(t, filepath.Join(disk, "ballast"))
	read := func(when string) {
		t.Helper()
		for _, args := range [][]string{{"ls"}, {"show", "s"}, {"export", "s", "--format", "json", "-o", "-"}} {
			cmd := exec.CommandContext(t.Context(), testserver.Binary(t), append(args, "--data", data)...)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "pears") {
				t.Errorf("%v %s: %v\n%.500s", args, when, err, out)
			}
		}
	}
	read("without a server")
	s = testserver.Start(t, data)
	if status, text := readyz(t, s.URL); status != http.StatusServiceUnavailable || !strings.Contains(text, "no space") {
		t.Errorf("readyz on a full disk: %d %s", status, text)
	}
	read("with a server")
	if code := s.End(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d\n%s", code, s.Log())
	}
	if left, _ := filepath.Glob(filepath.Join(data, "server.json*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// smallDisk mounts a real file system of a few megabytes.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	return disk
}

// fillDisk writes a file until there is no space left.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func readyz(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s", path)
		}
		<-time.After(20 * time.Millisecond)
	}
}
