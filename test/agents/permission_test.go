package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// writes returns a task in which a tool writes a file.
func writes(tool, path, content string) func(string) string {
	return func(file string) string {
		return fmt.Sprintf(`[tool %s {%q:%q,%q:"alpha\nbeta\n"}]`, tool, path, file, content)
	}
}

// patches returns a task in which Codex writes a file.
func patches(file string) string {
	return fmt.Sprintf(`[run "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: %s\n+alpha\n+beta\n*** End Patch\nEOF\n"]`, file)
}

// editRejected rejects the agent's request to write a file. The question must show the file
// and its content, and the run must end normally.
func (s *stage) editRejected() {
	if s.agent.edit == nil {
		s.Skip("this agent does not ask")
	}
	made, err := s.client().Create(s.Context(), api.NewSession{})
	if err != nil {
		s.Fatal(err)
	}
	_, events := s.run(made.ID, "hello", nil)
	s.done(events)
	folder, err := filepath.Glob(s.folder(made.ID))
	if err != nil || len(folder) != 1 {
		s.Fatalf("the session has the folders %q: %v", folder, err)
	}
	file := filepath.Join(folder[0], "fresh.txt")
	s.choose = "reject"
	_, events = s.run(made.ID, s.agent.edit(file), nil)
	var action *tapedeck.PermissionAction
	for i := range events {
		if d, err := payload.DecodeAs[payload.PermissionRequested](events[i]); err == nil {
			action = d.Action
			s.Logf("asked: %s", events[i].Data)
		}
	}
	if action == nil {
		s.Fatal("no question has an action")
	}
	if len(action.Changes) != 1 || !strings.HasSuffix(action.Changes[0].Path, "fresh.txt") || !strings.Contains(action.Changes[0].Diff, "+alpha\n+beta\n") {
		s.Errorf("the question shows %+v", action)
	}
	if last := events[len(events)-1]; last.Type != tapedeck.RunFinished {
		s.Errorf("a rejected question ends the run with %s", last.Data)
	}
	if _, err := os.Stat(file); err == nil {
		s.Error("the file was written although it was rejected")
	}
}
