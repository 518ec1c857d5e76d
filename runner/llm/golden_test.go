package llm_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/llm"
)

var update = flag.Bool("update", false, "write the transcripts of the runs into testdata")

// changing matches the values that differ in each run.
var changing = regexp.MustCompile(`,"metadata":\{"tapedeck":\{"durationMs":\d+\}\}|,"durationMs":\d+`)

// TestGolden compares the events of a whole run with tools, and the requests to the
// model.
func TestGolden(t *testing.T) {
	for name, text := range map[string]string{
		"tools":    "[think] [tools]",
		"parallel": `[parallel] [tool write_file {"path":"a.txt","content":"hello"}] [tool none {}] [tool read_file {"path":"a.txt"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.options.System = "Be brief."
			w.options.Policy = llm.Policy{{Tool: "*", Decision: llm.Allow}}
			w.options.Prices = map[string]llm.Price{"test-model": {Input: 2, Output: 10, CachedInput: new(0.5)}}
			in := task(text)
			in.Folder = t.TempDir()
			events, err := collect(t.Context(), w.runner(), in)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", name+".golden"), transcript(events)+w.told(t))
		})
	}
}

// transcript returns one line for each event.
func transcript(events []tapedeck.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type != tapedeck.AgentStarted { // only some operating systems have it
			fmt.Fprintf(&b, "%d %s %s\n", e.Turn, e.Type, changing.ReplaceAll(e.Data, nil))
		}
	}
	return b.String()
}

// told returns the messages of each request to the model.
func (w *world) told(t *testing.T) string {
	var b strings.Builder
	for i, r := range w.model.Requests() {
		fmt.Fprintf(&b, "\nrequest %d\n", i+1)
		for _, m := range messages(t, r.Body) {
			fmt.Fprintf(&b, "%s\n", m)
		}
	}
	return b.String()
}

// messages returns the messages of a request, each as JSON.
func messages(t *testing.T, body []byte) []string {
	t.Helper()
	var r struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range r.Messages {
		var b bytes.Buffer
		if err := json.Compact(&b, m); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.String())
	}
	return out
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
