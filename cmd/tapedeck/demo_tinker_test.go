package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// The agent of the demo uses real tools on real files.
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
	started, err := demoOnce(t.Context(), a, demoTinker, "T", "tinker", tinkerTask)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.permit(t.Context(), started); err != nil {
		t.Fatal(err)
	}
	a.checkAnswers(t, demoTinker, "run_command", "write_file")
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

// checkAnswers checks that the agent asked before it used each of the tools, and that
// the demo answered.
func (a *app) checkAnswers(t *testing.T, session string, tools ...string) {
	t.Helper()
	var asked []string
	answers := 0
	for ev, err := range a.Session(session).Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Type {
		case tapedeck.PermissionRequested:
			asked = append(asked, string(ev.Data))
		case tapedeck.PermissionAnswered:
			answers++
			if ev.Actor != "demo" {
				t.Errorf("the answer is of %q", ev.Actor)
			}
		}
	}
	if answers != len(asked) {
		t.Errorf("%d questions have %d answers", len(asked), answers)
	}
	for _, tool := range tools {
		if !strings.Contains(strings.Join(asked, ""), tool) {
			t.Errorf("%s was used without asking", tool)
		}
	}
}
