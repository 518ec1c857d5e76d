package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// The screen has the same table.
func TestVisible(t *testing.T) {
	b, err := os.ReadFile("testdata/visible.json")
	if err != nil {
		t.Fatal(err)
	}
	var table [][2]string
	if err := json.Unmarshal(b, &table); err != nil || len(table) == 0 {
		t.Fatal(err)
	}
	for _, row := range table {
		if got := visible(row[0]); got != row[1] {
			t.Errorf("%q is shown as %q, not %q", row[0], got, row[1])
		}
		if got := visible(row[1]); got != row[1] {
			t.Errorf("%q has nothing hidden and is shown as %q", row[1], got)
		}
	}
	if got := visible("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("what is not UTF-8 is shown as %q", got)
	}
}

// What is printed as JSON is the same value, and steers no terminal.
func TestJSONHidesNothing(t *testing.T) {
	const evil = "a\u009b2Jb\u202ec\u007fd\u200be\U000E0041f é 日本 <&> \u2028"
	var out bytes.Buffer
	e := &env{stdout: &out}
	raw := json.RawMessage(`"` + evil + `"`)
	for name, print := range map[string]func() error{
		"text":   func() error { return e.printJSON(map[string]string{"name": evil}) },
		"raw":    func() error { return e.printJSON(map[string]any{"name": raw}) },
		"record": func() error { return e.printRecord([]byte(`{"name":"` + evil + `"}`)) },
	} {
		out.Reset()
		if err := print(); err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(out.String(), "\n")
		if i := strings.IndexFunc(line, hidden); !ok || i >= 0 || !utf8.ValidString(line) {
			t.Errorf("%s: %q", name, line)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["name"] != evil {
			t.Errorf("%s: %q is read back as %q, %v", name, line, got["name"], err)
		}
		if !strings.Contains(line, "é 日本 <&>") {
			t.Errorf("%s: %q escapes more than it must", name, line)
		}
	}
}
