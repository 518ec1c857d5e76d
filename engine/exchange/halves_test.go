package exchange

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/api"
)

// Files that divide a character between two parts, lines or events are imported with the
// whole character.
func TestImportHalves(t *testing.T) {
	for name, tt := range map[string]struct{ format, in, want string }{
		"OpenAI":      {OpenAIMessages, `{"role":"user","content":"hi"}` + "\n" + `{"role":"assistant","content":[{"type":"text","text":"go \ud83d"},{"type":"text","text":"\ude80 on"}]}`, "go 🚀 on"},
		"AG-UI":       {AGUI, `{"type":"RUN_STARTED","threadId":"t","runId":"r"}` + "\n" + `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"go \ud83d"}` + "\n" + `{"type":"TEXT_MESSAGE_CHUNK","delta":"\ude80 on"}` + "\n" + `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`, "go 🚀 on"},
		"Claude Code": {ClaudeCode, `{"type":"assistant","uuid":"a","timestamp":"2025-01-01T00:00:00Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}` + "\n" + `{"type":"user","uuid":"b","timestamp":"2025-01-01T00:00:01Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"go \ud83d"},{"type":"text","text":"\ude80 on"}]}]}}`, "go 🚀 on"},
	} {
		t.Run(name, func(t *testing.T) {
			sessions, _ := mustRead(t, tt.format, tt.in)
			s := fold(t, sessions[0])
			got := ""
			for i := range s.Messages {
				got += s.Messages[i].Text
			}
			for i := range s.Calls {
				got += s.Calls[i].Result.Text
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A player of a recording decodes each line by itself.
func TestCastHalves(t *testing.T) {
	head := `{"version":2,"width":80,"height":24,"timestamp":1767607200,"title":"A title"}` + "\n"
	in := head + `[0, "o", "a \ud83d"]` + "\n" + `[1, "i", "\ud83d"]` + "\n" + `[2, "o", "\ude80 b"]` + "\n" + `[3, "i", "\ude80"]` + "\n"
	want := head + "[0, \"o\", \"a \"]\n[2, \"o\", \"🚀 b\"]\n[3, \"i\", \"🚀\"]\n"
	sessions, _ := mustRead(t, Auto, in)
	if got := export(t, Asciicast, source(sessions[0])); got != want {
		t.Errorf("imported and exported:\n%swant\n%s", got, want)
	}
	events := log(
		`terminal.resize {"terminal":"t","cols":80,"rows":24}`,
		`terminal.output {"terminal":"t","data":"a \ud83d"}`,
		`terminal.output {"terminal":"t","data":"\ude80 b \ud83d\ude80","cuts":[[5,0],[5,1000]]}`,
	)
	got := export(t, Asciicast, source(events))
	if _, lines, _ := strings.Cut(got, "\n"); lines != "[1, \"o\", \"a \"]\n[2, \"o\", \"🚀 b\"]\n[3, \"o\", \" 🚀\"]\n" {
		t.Errorf("exported: %s", got)
	}
}

// A redaction finds what has a character in two deltas, and leaves other halves as they are.
func TestRedactHalves(t *testing.T) {
	got := redacted(t, redactor(t, api.Redaction{Patterns: []string{"my 🚀 key", "sec"}}), log(
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a \ud83d"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 my \ud83d"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 key, sec \ud83d"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 end"}`,
	))
	want := []string{
		`{"messageId":"m","delta":"a \ud83d"}`,
		`{"messageId":"m","delta":"\ude80 [redacted]"}`,
		`{"messageId":"m","delta":", [redacted] \ud83d"}`,
		`{"messageId":"m","delta":"\ude80 end"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
