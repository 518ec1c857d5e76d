package main

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestReadingDoesNotServe: while one command lists sessions, another command must not start
// its run in that process, because the process ends soon. A command that reads for longer
// serves other commands.
func TestReadingDoesNotServe(t *testing.T) {
	dir := t.TempDir()
	e := &env{data: dir}
	a, err := openApp(t.Context(), appOptions{dir: dir, reads: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	h, err := hold(a)
	if err != nil {
		t.Fatal(err)
	}
	if c := e.locate(); c != nil && time.Since(begin) < readTime {
		t.Error("a command that reads serves others at once")
	}
	h.writes.Wait()
	if e.locate() == nil {
		t.Error("a command that reads for long does not serve others")
	}
	if waited := time.Since(begin); waited < readTime {
		t.Errorf("it serves others after %v", waited)
	}
	if _, err := sqlite.TakeLock(dir); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Error(err)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if _, ok := readNote(dir); ok {
		t.Error("the note stays")
	}
}
