package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

var update = flag.Bool("update", false, "write what the fold gives into the fixtures")

// A fixture is a log with its expected snapshot. Implementations of the fold in
// other languages use the same files: compare snapshots as JSON values.
type fixture struct {
	About    string            `json:"about"`
	Thread   string            `json:"thread,omitempty"` // the requested thread; "" for all
	Events   []json.RawMessage `json:"events"`
	Snapshot json.RawMessage   `json:"snapshot"`
}

func readFixture(t *testing.T, path string) fixture {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

func (f fixture) events(t *testing.T) []tapedeck.Event {
	t.Helper()
	events := make([]tapedeck.Event, len(f.Events))
	for i, raw := range f.Events {
		if err := json.Unmarshal(raw, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

func fold(events []tapedeck.Event) *view.Conversation {
	c := new(view.Conversation)
	var jumps []tapedeck.Jump
	for i := range events {
		if j, ok := events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	if jumps != nil {
		c.UseTimeline(view.NewTimeline(jumps), events[len(events)-1].Offset+1)
	}
	for i := range events {
		c.Apply(&events[i])
	}
	return c
}

func snapshot(c *view.Conversation, thread string) view.Snapshot {
	if thread == "" {
		return c.Snapshot()
	}
	return c.Thread(thread)
}

func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.json")
	if len(files) == 0 {
		t.Fatal("no fixtures")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			f := readFixture(t, path)
			got := encode(t, snapshot(fold(f.events(t)), f.Thread))
			if *update {
				f.Snapshot = got
				writeFixture(t, path, f)
				return
			}
			if diff := cmp.Diff(value(t, f.Snapshot), value(t, got)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", f.About, diff)
			}
		})
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func value(t *testing.T, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// writeFixture writes one event per line, so that people can read the file.
func writeFixture(t *testing.T, path string, f fixture) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\n  \"about\": ")
	b.Write(encode(t, f.About))
	if f.Thread != "" {
		b.WriteString(",\n  \"thread\": ")
		b.Write(encode(t, f.Thread))
	}
	b.WriteString(",\n  \"events\": [")
	for i, e := range f.Events {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n    ")
		if err := json.Compact(&b, e); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("\n  ],\n  \"snapshot\": ")
	b.Write(f.Snapshot)
	b.WriteString("\n}\n")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
