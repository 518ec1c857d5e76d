package process_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/process"
)

// TestHalves has programs that divide a character between two lines.
func TestHalves(t *testing.T) {
	for files, tt := range map[string]struct {
		options process.Options
		want    map[string]string // by the type of the events
	}{
		"claude": {process.Options{}, map[string]string{
			"TEXT_MESSAGE_CONTENT": "go 🚀 on", "REASONING_MESSAGE_CONTENT": "hm 🚀 so", "TOOL_CALL_ARGS": `{"q":"🚀"}`, "TOOL_CALL_RESULT": "a 🚀 b",
		}},
		"gemini": {process.Options{}, map[string]string{"TEXT_MESSAGE_CONTENT": "go 🚀 on"}},
		"pi":     {process.Options{}, map[string]string{"TEXT_MESSAGE_CONTENT": "go 🚀 on", "REASONING_MESSAGE_CONTENT": "hm 🚀 so"}},
		"lines":  {mapped(t, mapping), map[string]string{"TEXT_MESSAGE_CONTENT": "go 🚀 on"}},
	} {
		t.Run(files, func(t *testing.T) {
			lines, err := run(t, t.Context(), scripted(t, files, tt.options), tapedeck.Invocation{Task: "halves"})
			if err != nil {
				t.Fatal(err)
			}
			for typ, want := range tt.want {
				got := ""
				for _, l := range only(lines, typ) {
					var d struct{ Delta, Content string }
					if err := json.Unmarshal([]byte(strings.TrimPrefix(l, typ+" ")), &d); err != nil {
						t.Fatal(err)
					}
					got += d.Delta + d.Content
				}
				if got != want {
					t.Errorf("%s: got %q, want %q", typ, got, want)
				}
			}
		})
	}
}
