package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func TestFieldValue(t *testing.T) {
	options := []tapedeck.FormOption{{Value: "patch", Label: "Patch it"}, {Value: "wait"}, {Value: "7"}}
	for _, c := range []struct {
		typ, text, want string // want is "" for an error
	}{
		{"string", "5", `"5"`}, {"string", ` a "b" `, `" a \"b\" "`}, {"text", "", `""`}, {"date", "2026-12-24", `"2026-12-24"`},
		{"integer", " 12 ", "12"}, {"number", "-1.5", "-1.5"}, {"number", "x", ""}, {"integer", "0x1F", ""}, {"number", "NaN", ""}, {"number", "", ""},
		{"integer", "9007199254740993", "9007199254740993"}, {"integer", "12345678901234567890", "12345678901234567890"}, {"number", "1e400", "1e400"}, {"number", "1e1000000000", ""}, {"integer", "12345678901234567890123456789012345", ""}, {"number", "0.10", "0.10"},
		{"boolean", "Y", "true"}, {"boolean", "no", "false"}, {"boolean", "maybe", ""},
		{"enum", "1", `"patch"`}, {"enum", "wait", `"wait"`}, {"enum", "7", `"7"`}, {"enum", "9", `"9"`},
		{"other", "x", `"x"`},
	} {
		got, err := fieldValue(&tapedeck.FormField{ID: "f", Type: c.typ, Options: options}, c.text)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %q: %s, %v; want %s", c.typ, c.text, got, err, c.want)
		}
	}
}

func TestAssignments(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "vars.json")
	if err := os.WriteFile(file, []byte(`{"a":1,"b":{"c":[2]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := []tapedeck.FormField{{ID: "code", Type: "string"}, {ID: "n", Type: "integer"}}
	got, err := assignments("var", []string{"a=two", "code=5", "n=6", "list=[1,2]", "text=a=b"}, file, fields)
	want := map[string]json.RawMessage{
		"a": json.RawMessage(`"two"`), "b": json.RawMessage(`{"c":[2]}`), "code": json.RawMessage(`"5"`), "n": json.RawMessage("6"),
		"list": json.RawMessage("[1,2]"), "text": json.RawMessage(`"a=b"`),
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	if err := os.WriteFile(file, []byte(`[1]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		file string
	}{{[]string{"a"}, ""}, {[]string{"=1"}, ""}, {nil, file}, {nil, filepath.Join(dir, "none")}, {[]string{"n=x"}, ""}} {
		if got, err := assignments("var", c.args, c.file, fields); err == nil {
			t.Errorf("%v %s: %v", c.args, c.file, got)
		}
	}
	if got, err := assignments("var", nil, "", nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// TestFilling: an empty line leaves a field out, a required field needs a value, and fields
// that can only be read are not asked for.
func TestFilling(t *testing.T) {
	q := tapedeck.Question{
		Options: []tapedeck.PermissionOption{{ID: "done", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}},
		Form: []tapedeck.FormField{
			{ID: "shown", Type: "string", ReadOnly: true}, {ID: "n", Type: "integer", Required: true},
			{ID: "note", Type: "string"}, {ID: "kind", Type: "enum", Required: true, Default: json.RawMessage(`"a"`), Options: []tapedeck.FormOption{{Value: "a"}}},
		},
	}
	if !needsForm(&q, "done") || needsForm(&q, "no") || needsForm(&tapedeck.Question{Options: q.Options}, "done") {
		t.Error("the wrong options need a form")
	}
	f := newFilling(&q, "done")
	for _, c := range []struct {
		line string
		left int
	}{{"", 3}, {"x", 3}, {"4", 2}, {" ", 1}, {"", 0}} {
		if err := f.take(c.line); (err != nil) != (c.left == 3) || len(f.fields) != c.left {
			t.Errorf("%q: %v, %d left", c.line, err, len(f.fields))
		}
	}
	if d := cmp.Diff(tapedeck.Members{"n": json.RawMessage("4")}, f.input); d != "" {
		t.Error(d)
	}
	if got := fieldPrompt(&tapedeck.FormField{ID: "n", Type: "integer", Min: new(0.1), Max: new(9007199254740994.0)}); got != "n (integer, at least 0.1, at most 9007199254740994, may be empty)" {
		t.Error(got)
	}
	if got := fieldPrompt(&q.Form[3]); got != `kind (1 a, default "a")` {
		t.Errorf("the prompt is %s", got)
	}
}
