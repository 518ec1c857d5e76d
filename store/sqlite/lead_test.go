package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// A witness notes on which goroutine commits are made.
type witness struct {
	gate  *gate
	mu    sync.Mutex
	alone bool // the newest commit was made by a caller
}

func (w *witness) commit(commit func() error) error {
	w.mu.Lock()
	w.alone = strings.Contains(string(debug.Stack()), "sqlite.(*Store).Append")
	w.mu.Unlock()
	return w.gate.commit(commit)
}

// TestLoneCallerCommits: a lone caller commits on its own goroutine. An append that
// begins during this commit is not lost, and under load appends gather in groups.
func TestLoneCallerCommits(t *testing.T) {
	w := &witness{gate: newGate()}
	s := open(t, t.TempDir(), sqlite.Options{Commit: w.commit})
	create(t, s, "a")
	appends := func() (alone bool) {
		s.WaitIdle()
		add(t, s, "a", 1)
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.alone
	}
	for !appends() { // the goroutine of run may look into the queue once more
	}
	before := w.gate.count()
	w.gate.hold(func() { add(t, s, "a", 1) })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := s.Append(context.Background(), tapedeck.Append{Session: "a", Events: chunks(1)}); err != nil {
				t.Error(err)
			}
		})
	}
	s.WaitQueued(2)
	w.gate.open()
	wg.Wait()
	if n := w.gate.count() - before; n != 2 {
		t.Errorf("two callers at once took %d commits, with the one before", n)
	}
	for range 10 {
		if appends() {
			t.Error("a caller commits on its own goroutine soon after a group of two")
		}
	}
	for !appends() {
	}
}

// childPanics lets a Check panic on the goroutine of a lone caller, which recovers as
// an HTTP server does for its handlers.
func childPanics(dir string) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err == nil {
		_, err = s.Create(ctx, tapedeck.Spec{ID: "a"})
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	defer func() { fmt.Println("went on after", recover()) }()
	_, _ = s.Append(ctx, tapedeck.Append{Session: "a", Events: chunks(1), Check: func(*tapedeck.Session) error { panic("out of order") }})
}

// TestAPanicEndsTheProgram: the program does not continue with half a group.
func TestAPanicEndsTheProgram(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childVar+"=panic")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: out of order") || !strings.Contains(string(out), "childPanics") || strings.Contains(string(out), "went on") {
		t.Errorf("%v: %s", err, out)
	}
	if h, err := open(t, dir, sqlite.Options{}).Head(t.Context(), "a"); err != nil || h.Head != 0 {
		t.Errorf("the head is %d: %v", h.Head, err)
	}
}
