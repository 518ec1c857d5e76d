package exchange

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/order"
)

// For any input, either the events can be appended, or the error says what is
// wrong with the input.
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
		if err != nil || format == AGUI { // in AG-UI, a later run can answer a call
			return
		}
		for _, events := range sessions {
			fold(t, events)
		}
	})
}

func FuzzOpenAI(f *testing.F) { fuzz(f, OpenAIMessages, "testdata/openai.jsonl") }

func FuzzClaude(f *testing.F) { fuzz(f, ClaudeCode, "testdata/claude.jsonl") }

func FuzzAGUI(f *testing.F) { fuzz(f, AGUI, "testdata/agui.jsonl") }

func FuzzAsciicast(f *testing.F) { fuzz(f, Asciicast, "testdata/asciicast_v3.jsonl") }

// FuzzNDJSON: the events from an export, complete or broken, can be appended, and
// are the same after another export and import.
func FuzzNDJSON(f *testing.F) {
	in, err := os.ReadFile("testdata/export.ndjson")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in)
	f.Add(bytes.Replace(in, []byte(`"tapedeck":1`), []byte(`"tapedeck":1,"view":"effective"`), 1))
	for line := range bytes.Lines(in) {
		f.Add(bytes.Replace(line, []byte(`"offset":`), []byte(`"offset":0`), 1))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		sessions, _, err := imported(NDJSON, string(in), Options{})
		if kind := tapedeck.KindOf(err); err != nil && kind != tapedeck.Invalid && kind != tapedeck.TooLarge {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		for _, events := range sessions {
			v := order.NewVerifier()
			for i := range events {
				if err := errors.Join(events[i].Check(), v.Add(&events[i])); err != nil {
					t.Fatal(err)
				}
			}
			for _, format := range []string{NDJSON, JSON, CSV, Markdown} {
				file := export(t, format, source(events))
				if format != NDJSON {
					continue
				}
				if again, _, err := imported(NDJSON, file, Options{}); err != nil || len(again) != 1 || len(again[0]) != len(events) {
					t.Fatalf("%v of %s", err, file)
				}
			}
		}
	})
}

// FuzzRedact: any redacted data of an event is still JSON.
func FuzzRedact(f *testing.F) {
	for _, l := range talk {
		_, data, _ := strings.Cut(l, " ")
		f.Add([]byte(data), "password", "[a-c]+")
	}
	f.Fuzz(func(t *testing.T, data []byte, key, pattern string) {
		e := tapedeck.Event{Type: tapedeck.TextMessageContent, Data: data}
		r, err := NewRedactor(api.Redaction{Keys: []string{key}, Patterns: []string{pattern}})
		if err != nil || e.Check() != nil {
			return
		}
		r.Learn(&e)
		r.Learn(nil)
		if e = r.Event(e); e.Check() != nil {
			t.Fatalf("%s", e.Data)
		}
	})
}
