package script_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/script"
)

var block = regexp.MustCompile("(?s)```(jsonl?)\n(.*?)```")

// TestDocument plays the examples of docs/scripts.md. Only an error step of a script may
// end a run.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d examples were found", len(blocks))
	}
	for _, b := range blocks {
		o := script.Options{Script: "example", Instant: true, Scripts: fstest.MapFS{"example.jsonl": {Data: []byte(b[2])}}}
		in := tapedeck.Invocation{ID: "inv_1", Task: "the task"}
		if b[1] == "json" {
			in.Config = json.RawMessage(b[2])
		}
		n := 0
		for ev, err := range script.New(o).Run(t.Context(), in) {
			if err != nil && tapedeck.KindOf(err) != tapedeck.Unavailable {
				t.Errorf("%v in\n%s", err, b[2])
			}
			if n++; err == nil {
				if err := payload.CheckData(&ev); err != nil {
					t.Errorf("%s: %v", ev.Type, err)
				}
			}
		}
		if n < 3 {
			t.Errorf("%d events of\n%s", n, b[2])
		}
	}
	for _, name := range script.Names() {
		if !strings.Contains(string(text), "\n| `"+name+"` | ") {
			t.Errorf("the script %s is not described", name)
		}
	}
	for _, member := range stepMembers(t) {
		if !strings.Contains(string(text), "`"+member+"`") {
			t.Errorf("the member %s is not described", member)
		}
	}
}

// stepMembers returns the names of the members that the parser knows, from its source.
func stepMembers(t *testing.T) []string {
	source, err := os.ReadFile("parse.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile("`json:\"([a-z]+)").FindAllStringSubmatch(string(source), -1) {
		names = append(names, m[1])
	}
	if len(names) < 20 {
		t.Fatalf("only %q were found", names)
	}
	return names
}
