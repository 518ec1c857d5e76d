package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// The demo's agent uses real tools on real files.
func TestTinker(t *testing.T) {
	dir := t.TempDir()
	a, err := openApp(t.Context(), appOptions{dir: dir, demo: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := demoOnce(t.Context(), a, demoTinker, "T", "tinker", tinkerTask); err != nil {
		t.Fatal(err)
	}
	if err := a.waitFor(t.Context(), a.firstRun(t, demoTinker)); err != nil {
		t.Fatal(err)
	}
	s, err := a.Session(demoTinker).Info(t.Context())
	if err != nil || s.Status != tapedeck.StatusComplete {
		t.Errorf("it is %s, %v", s.Status, err)
	}
	for name, want := range map[string]string{"notes.md": "Run a command", "done.md": "was run", "made-by-agent.txt": "hello from the tool"} {
		got, err := os.ReadFile(filepath.Join(workPlace(dir), workName, demoTinker, name))
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

func (a *app) firstRun(t *testing.T, session string) tapedeck.Started {
	t.Helper()
	for ev, err := range a.Session(session).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Invocation != "" {
			return tapedeck.Started{Session: session, Invocation: ev.Invocation, Offset: ev.Offset}
		}
	}
	t.Fatal("nothing has run")
	return tapedeck.Started{}
}
