package exchange

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// recordings returns the files of a folder of recorded conversations, which are
// not in the repository.
func recordings(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../../shared/transcripts", folder, "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("there are no recordings in ../shared/transcripts/%s beside the repository", folder)
	}
	return files
}

// A tally has counts of a conversation, made without the code under test.
type tally struct{ User, System, Assistant, Thoughts, Calls, Results int }

func count(s view.Snapshot) (n tally) {
	for _, m := range s.Messages {
		switch m.Role {
		case "user":
			n.User++
		case "system":
			n.System++
		case "assistant":
			n.Assistant++
		case "reasoning":
			n.Thoughts++
		default:
			n.User = -1
		}
	}
	for _, k := range s.Calls {
		if k.Name != "" {
			n.Calls++
		}
		if k.Result != nil {
			n.Results++
		}
	}
	return n
}

// readTwice reads a file twice and returns its sessions, which must be equal.
func readTwice(t *testing.T, format, path string) ([]byte, [][]tapedeck.Event) {
	t.Helper()
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := mustRead(t, format, string(in))
	again, _ := mustRead(t, format, string(in))
	for i := range first {
		if len(again) != len(first) || brief(first[i]) != brief(again[i]) {
			t.Errorf("read twice, session %d of %d is not the same", i, len(first))
		}
	}
	return in, first
}

func TestRealOpenAI(t *testing.T) {
	for _, path := range recordings(t, "tau-bench") {
		in, sessions := readTwice(t, OpenAIMessages, path)
		var want, got []tally
		for line := range strings.Lines(string(in)) {
			var c struct {
				Traj []struct {
					Role    string
					Content string
					Calls   []any `json:"tool_calls"`
				}
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			var n tally
			for _, m := range c.Traj {
				switch m.Role {
				case "user":
					n.User++
				case "system":
					n.System++
				case "tool":
					n.Results++
				}
				if m.Role == "assistant" && m.Content != "" {
					n.Assistant++
				}
				n.Calls += len(m.Calls)
			}
			want = append(want, n)
		}
		for _, events := range sessions {
			got = append(got, count(fold(t, events)))
		}
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("%s (-want +got):\n%s", filepath.Base(path), d)
		}
	}
}

func TestRealClaude(t *testing.T) {
	for _, path := range recordings(t, "claude-code") {
		in, sessions := readTwice(t, ClaudeCode, path)
		if len(sessions) != 1 {
			t.Fatalf("%s: %d sessions", path, len(sessions))
		}
		got := count(fold(t, sessions[0]))
		if d := cmp.Diff(naiveClaude(t, in), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", filepath.Base(path), d)
		}
		for _, e := range sessions[0] {
			if e.Time.IsZero() && e.Type != tapedeck.SessionImported {
				t.Errorf("%s: a %s has no time", path, e.Type)
			}
		}
	}
}

// naiveClaude counts what the lines of a session file have.
func naiveClaude(t *testing.T, in []byte) (n tally) {
	t.Helper()
	var doc struct{ Loglines []json.RawMessage }
	if json.Unmarshal(in, &doc) != nil {
		for line := range strings.Lines(string(in)) {
			doc.Loglines = append(doc.Loglines, json.RawMessage(line))
		}
	}
	for _, line := range doc.Loglines {
		var m struct {
			Type    string
			Message struct{ Content any }
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		blocks, isList := m.Message.Content.([]any)
		if _, isText := m.Message.Content.(string); isText {
			blocks, isList = []any{map[string]any{"type": "text"}}, true
		}
		says := false
		for _, b := range blocks {
			o, _ := b.(map[string]any)
			switch kind, _ := o["type"].(string); {
			case kind == "tool_result":
				n.Results++
			case m.Type == "user":
				says = true
			case kind == "text":
				n.Assistant++
			case kind == "thinking":
				n.Thoughts++
			case kind == "tool_use":
				n.Calls++
			}
		}
		if isList && says {
			n.User++
		}
	}
	return n
}
