package task

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// docs/protocol/task-events.md describes every type and its members.
func TestDocsHaveEveryEvent(t *testing.T) {
	doc := readDoc(t, "protocol/task-events.md")
	rows := make(map[string]string)
	for line := range strings.Lines(doc) {
		if typ, ok := strings.CutPrefix(line, "| `"); ok {
			typ, _, _ = strings.Cut(typ, "`")
			rows[typ] += line
		}
	}
	want := map[string][]string{
		typeAgentStart: {"session_id", "model", "tools", "skills", "task"}, typeUserMessage: {"text"}, typeThinking: {"text"},
		typeMessage: {"text", "is_partial", "full_text"}, typeToolStart: {"tool_name", "tool_input", "tool_id"},
		typeToolComplete:  {"tool_name", "tool_id", "result", "duration_ms", "is_error"},
		typeAgentComplete: {"status", "num_turns", "duration_ms", "total_cost_usd", "usage", "model"},
		typeError:         {"message", "error_type"}, typeCancelled: {"message", "resumable"},
	}
	for typ, members := range customFields {
		want[typ] = members
	}
	for typ, members := range want {
		for _, m := range members {
			if !strings.Contains(rows[typ], "`"+m+"`") {
				t.Errorf("the row of %s does not have %s", typ, m)
			}
		}
	}
	for name, text := range map[string]string{
		"protocol/task-events.md": fmt.Sprintf("%d,000 events or %d MiB", historyLimit/1000, historyBytes>>20),
		"http.md":                 fmt.Sprintf("%d,000 events, %d MiB, or %d,000,000 events", historyLimit/1000, historyBytes>>20, historyScan/1_000_000),
	} {
		if !strings.Contains(readDoc(t, name), text) {
			t.Errorf("docs/%s does not say %q", name, text)
		}
	}
}
