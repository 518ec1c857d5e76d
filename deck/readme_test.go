package deck_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestReadmePrograms builds the Go programs of the README and runs the one that
// ends by itself.
func TestReadmePrograms(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(text, -1)
	if len(programs) != 2 {
		t.Fatalf("the README has %d programs, want 2", len(programs))
	}
	var bin string
	for _, p := range programs {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), p[1], 0o600); err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(dir, "program")
		if out, err := exec.Command("go", "build", "-o", bin, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run := exec.Command(bin)
	run.Dir = filepath.Dir(bin)
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "You said: hello") || !strings.Contains(string(out), tapedeck.RunFinished) {
		t.Errorf("the last program: %v\n%s", err, out)
	}
}
