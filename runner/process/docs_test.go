package process

import (
	"os"
	"strings"
	"testing"
)

// TestDocument checks that docs/agents/process.md has all presets, dialects and
// meanings of lines.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/agents/process.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range Presets {
		want = append(want, "\n| `"+p.Name+"` | `"+p.Dialect+"` |")
	}
	for _, d := range Dialects() {
		want = append(want, "\n| `"+d+"` |")
	}
	for a := range meanings {
		want = append(want, "`"+a+"`")
	}
	for _, w := range want {
		if !strings.Contains(string(text), w) {
			t.Errorf("there is no %q", w)
		}
	}
}
