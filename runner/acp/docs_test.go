package acp

import (
	"os"
	"strings"
	"testing"
)

// TestDocument checks that docs/agents/acp.md has all presets with their programs.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/agents/acp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Presets {
		for _, want := range []string{"\n| `" + p.Name + "` | `" + strings.Join(p.Command, " ") + "` |", "`" + p.Install + "`"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("there is no %q", want)
			}
		}
	}
	for kind := range updates {
		if kind != "usage_update" && kind != "user_message_chunk" && !strings.Contains(string(text), "`"+kind+"`") {
			t.Errorf("%s is not described", kind)
		}
	}
}
