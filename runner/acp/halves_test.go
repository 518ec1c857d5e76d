package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/acp"
)

// TestHalves has an agent that divides a character between two updates: as pieces, and in a
// text that it repeats as a whole.
func TestHalves(t *testing.T) {
	lines, err := play(t, t.Context(), scripted(t, "plain", acp.Options{}), tapedeck.Invocation{Task: "halves"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range lines {
		typ, data, _ := strings.Cut(l, " ")
		var d struct {
			Delta, Data, Terminal string
			Content               json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatal(err)
		}
		got[strings.TrimSpace(typ+" "+d.Terminal)] += d.Delta + d.Data + strings.Trim(string(d.Content), `"`)
	}
	for typ, want := range map[string]string{
		tapedeck.ReasoningMessageContent: "hm 🚀 so", tapedeck.TextMessageContent: "go 🚀 on",
		tapedeck.TerminalOutput + " c.c1": "at 🚀 it", tapedeck.TerminalOutput + " c.c2": "to 🚀 be", tapedeck.ToolCallResult: "at 🚀 itto 🚀 be",
	} {
		if got[typ] != want {
			t.Errorf("%s: got %q, want %q", typ, got[typ], want)
		}
	}
}
