package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestClockThatWasSetBack: a database that was written in the future is a problem.
func TestClockThatWasSetBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	file := filepath.Join(dir, "tapedeck.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{0: "ok", 30 * time.Second: "ok", time.Hour: "problem", -time.Hour: "ok"} {
		if err := os.Chtimes(file, now, now.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := examineClock(dir, now); got.State != want {
			t.Errorf("%s: %+v", after, got)
		}
	}
}
