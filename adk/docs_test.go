package adk_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestPage builds the program on the page of the documentation. It needs a key to run.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/agents/adk.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(programs) != 1 || !bytes.HasPrefix(programs[0][1], []byte("package main\n")) {
		t.Fatalf("the page has %d pieces of Go, want one program", len(programs))
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, programs[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
