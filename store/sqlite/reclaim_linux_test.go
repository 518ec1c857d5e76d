package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// holes returns how many bytes of a file take no space on the disk.
func holes(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size() - info.Sys().(*syscall.Stat_t).Blocks*512
}

// TestSpaceIsGivenBack: after a session was deleted, its space is free on the disk, and the
// database is sound, also when its pages are used again.
func TestSpaceIsGivenBack(t *testing.T) {
	dir, tick := t.TempDir(), make(chan time.Time)
	s := open(t, dir, sqlite.Options{ReapTick: tick})
	file := filepath.Join(dir, "tapedeck.db")
	fill := func(id string) {
		t.Helper()
		if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat([]byte("x"), 8<<10)
		for n := range 16 {
			var events []tapedeck.Event
			for range 50 {
				events = append(events, tapedeck.Event{Type: "CUSTOM", Data: fmt.Appendf(nil, `{"name":"n","value":"%d%s"}`, n, text)})
			}
			if _, err := s.Append(t.Context(), tapedeck.Append{Session: id, Events: events}); err != nil {
				t.Fatal(err)
			}
		}
	}
	sound := func() {
		t.Helper()
		report, err := s.Verify(t.Context(), func(int64, int64) {})
		if err != nil || len(report.Problems) > 0 {
			t.Fatalf("%v %+v", err, report)
		}
	}
	fill("kept")
	fill("gone")
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	for holes(t, file) < 4<<20 { // the writer purges between the ticks
		tick <- time.Time{}
	}
	sound()
	fill("again")
	sound()
	p, err := s.Read(t.Context(), "kept", tapedeck.Range{Limit: 1000, MaxBytes: 1 << 30})
	if err != nil || len(p.Records) != 800 {
		t.Errorf("%d events, %v", len(p.Records), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, sqlite.Options{})
	sound()
}
