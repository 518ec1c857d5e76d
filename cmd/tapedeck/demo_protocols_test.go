package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// The demo shows sessions that front ends and other agents have begun: really over
// their protocols, and once.
func TestDemoProtocols(t *testing.T) {
	dir := t.TempDir()
	a, err := openApp(t.Context(), appOptions{dir: dir, demo: true})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hold(a)
	if err != nil {
		t.Fatal(errors.Join(err, a.close()))
	}
	defer func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	}()
	heads := map[string]int64{}
	for range 2 {
		if err := demoProtocols(t.Context(), a, h.url); err != nil {
			t.Fatal(err)
		}
		for id, task := range map[string]string{demoAGUI: aguiTask, demoA2A: a2aTask} {
			s, err := a.Session(id).Info(t.Context())
			if err != nil || s.Status != tapedeck.StatusComplete || s.Labels[demoLabel] != "true" || heads[id] != 0 && heads[id] != s.Head {
				t.Errorf("%s is %+v, %v; its head was %d", id, s, err, heads[id])
			}
			heads[id] = s.Head
			list, err := a.Session(id).Messages(t.Context())
			if err != nil || list[0].Role != payload.RoleUser || list[0].Text != task {
				t.Errorf("%s begins with %+v, %v", id, list[0], err)
			}
		}
	}
	if note, err := os.ReadFile(filepath.Join(workPlace(dir), workName, demoAGUI, "bern.md")); err != nil || !strings.Contains(string(note), "Aare") {
		t.Errorf("the note is %q, %v", note, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runOverAGUI(ctx, h.url); !errors.Is(err, context.Canceled) {
		t.Errorf("a demo that is stopped gives %v", err)
	}
}
