package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// childVar is an environment variable that makes the test binary another program: its
// value is the name, and the first argument is the data folder.
const childVar = "TAPEDECK_SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVar) {
	case "":
		os.Exit(m.Run())
	case "append":
		childAppends(os.Args[1], 8, 1<<30)
	case "append 100 times":
		childAppends(os.Args[1], 1, 100)
	case "erase before", "erase after":
		childErases(os.Args[1], os.Getenv(childVar) == "erase after")
	case "panic":
		childPanics(os.Args[1])
	}
}

// childAppends has some goroutines append n times each, to sessions of their own and to
// a shared one, and prints the acknowledged appends: session, first offset, next
// offset.
func childAppends(dir string, writers, n int) {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range n {
				id := fmt.Sprint("s", w)
				if i%3 == 0 {
					id = "all"
				}
				_, err := s.Create(context.Background(), tapedeck.Spec{ID: id})
				var done tapedeck.Appended
				if err == nil {
					done, err = s.Append(context.Background(), tapedeck.Append{Session: id, Events: chunks(1 + i%4)})
				}
				mu.Lock()
				if err != nil {
					fmt.Println("error", err)
				} else {
					fmt.Println(id, done.First, done.Next)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	_ = s.Close()
}

func child(t *testing.T, what, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childVar+"="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestKill kills a process that appends, again and again. Each acknowledged append must
// be there once, and each other append completely or not at all.
func TestKill(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	acked := map[string]int64{}
	for round := range rounds {
		cmd, lines := child(t, "append", dir)
		for n := 0; lines.Scan(); n++ {
			var id string
			var first, next int64
			if _, err := fmt.Sscan(lines.Text(), &id, &first, &next); err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
			acked[id] = max(acked[id], next)
			if n == 40+round*7 {
				_ = cmd.Process.Kill() // the output up to that is read below
			}
		}
		_ = cmd.Wait()
		checkAfterKill(t, dir, acked)
	}
}

func checkAfterKill(t *testing.T, dir string, acked map[string]int64) {
	t.Helper()
	s := open(t, dir, sqlite.Options{})
	defer s.Close()
	for id, next := range acked {
		v, err := s.Head(t.Context(), id)
		if err != nil || v.Head < next {
			t.Fatalf("session %s is at %d, and %d was acknowledged (%v)", id, v.Head, next, err)
		}
		n := int64(0)
		for e, err := range tapedeck.Events(t.Context(), s, id, 0) {
			if err != nil || e.Offset != n {
				t.Fatalf("session %s: offset %d where %d belongs (%v)", id, e.Offset, n, err)
			}
			n++
		}
		if n != v.Head {
			t.Fatalf("session %s has %d events and its head at %d", id, n, v.Head)
		}
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Fatalf("verify: %v %v", report.Problems, err)
	}
}

func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := child(t, "append", dir)
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if !lines.Scan() {
		t.Fatal("the child says nothing")
	}
	_, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind != tapedeck.Conflict || e.Hint == "" {
		t.Fatalf("got %v", err)
	}
	want := fmt.Sprintf("the data folder %s is in use by process %d (%s %s)", dir, cmd.Process.Pid, filepath.Base(os.Args[0]), dir)
	if e.Message != want {
		t.Errorf("got  %q\nwant %q", e.Message, want)
	}
}

func TestSecondOpenInOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("got %v", err)
	}
	var holder struct {
		PID     int
		Command string
	}
	b, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil || json.Unmarshal(b, &holder) != nil || holder.PID != os.Getpid() || holder.Command == "" {
		t.Errorf("the lock file says %s (%v)", b, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, sqlite.Options{})
}

// TestEveryCommitIsSynced counts with strace the fsyncs of a process that appends. With
// synchronous=NORMAL it would be only a few.
func TestEveryCommitIsSynced(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-q", "-e", "trace=fsync,fdatasync", "-o", trace, os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), childVar+"=append 100 times")
	out, err := cmd.Output()
	if err != nil {
		t.Skip("strace does not work here: ", err)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	syncs := len(regexp.MustCompile(`(?m)^\d+ +f(data)?sync\(`).FindAll(b, -1))
	if n := strings.Count(string(out), "\n"); n != 100 || syncs < n || syncs > n+40 {
		t.Errorf("%d calls for %d appends, one after the other", syncs, n)
	} else {
		t.Logf("%d calls for %d appends, two creates and opening the store", syncs, n)
	}
}
