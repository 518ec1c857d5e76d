package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The path of the folder in which an agent works does not lead to a data folder, and
// does not name one. Two data folders share no such folder.
func TestWorkPlace(t *testing.T) {
	data, state := filepath.Join(t.TempDir(), "data-folder", "data"), t.TempDir()
	t.Setenv(workVar, "")
	t.Setenv("XDG_STATE_HOME", state)
	a, err := openApp(t.Context(), appOptions{dir: data})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hold(a)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.stop() }()
	work, err := a.folders.session("s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(notePath(data)); err != nil {
		t.Fatalf("there is no server.json: %v", err)
	}
	for dir := work; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(notePath(dir)); err == nil {
			t.Errorf("%s leads from %s to the server", notePath(dir), work)
		}
	}
	if !strings.HasPrefix(work, state) || strings.Contains(work, filepath.Base(filepath.Dir(data))) {
		t.Errorf("the working folder is %s", work)
	}
	if workPlace(data) == workPlace(data+"2") {
		t.Error("two data folders share a working folder")
	}
	remove, err := a.folders.discard("s")
	if err != nil || remove() != nil || isThere(work) {
		t.Errorf("the folder is not removed with its session: %v", err)
	}
}

// If no agent has worked yet, there is no folder to discard.
func TestDiscardNothing(t *testing.T) {
	f := &folders{data: filepath.Join(t.TempDir(), "none")}
	if remove, err := f.discard("s"); err != nil || remove() != nil {
		t.Error(err)
	}
}
