package exchange

import (
	"bytes"
	"os"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// Whatever comes in, what comes out can be appended, or is an error that says
// what is wrong with the input.
func fuzz(f *testing.F, format, example string) {
	in, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in)
	for line := range bytes.Lines(in) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		sessions, d, err := read(t, format, bytes.NewReader(in), Options{})
		if kind := tapedeck.KindOf(err); err != nil && kind != tapedeck.Invalid && kind != tapedeck.TooLarge {
			t.Fatal(err)
		}
		if err == nil && len(sessions) == 0 {
			t.Fatal("no session and no error")
		}
		for _, s := range d.Skipped() {
			if s.Line < 1 || s.Reason == "" {
				t.Fatalf("%+v", s)
			}
		}
		if err != nil {
			return
		}
		for _, events := range sessions {
			fold(t, events)
		}
	})
}

func FuzzOpenAI(f *testing.F) { fuzz(f, OpenAIMessages, "testdata/openai.jsonl") }

func FuzzClaude(f *testing.F) { fuzz(f, ClaudeCode, "testdata/claude.jsonl") }
