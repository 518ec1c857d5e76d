package proposal

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

func TestFromArguments(t *testing.T) {
	for _, tt := range []struct{ name, arguments, want string }{
		{"command", `{"command":"rm -rf /tmp/a","description":"Tidy up","timeout":5}`,
			`{"tool":"T","command":"rm -rf /tmp/a","arguments":"{\n  \"timeout\": 5\n}","note":"Tidy up"}`},
		{"words", `{"cmd":["bash","-lc","echo 'hi' > a"],"workdir":"/w"}`, `{"tool":"T","command":"bash -lc 'echo '\\''hi'\\'' \u003e a'","folder":"/w"}`},
		{"edit", `{"file_path":"/w/a","old_string":"x\ny\n","new_string":"x\nz\n","replace_all":true}`,
			`{"tool":"T","changes":[{"path":"/w/a","diff":"@@ @@\n x\n-y\n+z\n"}],"arguments":"{\n  \"replace_all\": true\n}"}`},
		{"write", `{"path":"a","content":"x\ny"}`, `{"tool":"T","changes":[{"path":"a","diff":"@@ the whole new content @@\n+x\n+y\n"}]}`},
		{"edits", `{"path":"a","edits":[{"old":"x","new":"y"},{"old":"1","new":"2"}]}`,
			`{"tool":"T","changes":[{"path":"a","diff":"@@ @@\n-x\n+y\n@@ @@\n-1\n+2\n"}]}`},
		{"edits with more than is known", `{"path":"a","edits":[{"old":"x","new":"y","sudo":true}]}`,
			`{"tool":"T","arguments":"{\n  \"edits\": [\n    {\n      \"old\": \"x\",\n      \"new\": \"y\",\n      \"sudo\": true\n    }\n  ],\n  \"path\": \"a\"\n}"}`},
		{"patch", `{"patch":"*** Begin Patch\n"}`, `{"tool":"T","changes":[{"path":"patch","diff":"*** Begin Patch\n"}]}`},
		{"two of a name", `{"command":"ls","cmd":"rm"}`, `{"tool":"T","command":"ls","arguments":"{\n  \"cmd\": \"rm\"\n}"}`},
		{"of another shape", `{"command":{"a":1}}`, `{"tool":"T","arguments":"{\n  \"command\": {\n    \"a\": 1\n  }\n}"}`},
		{"no object", `[1]`, `{"tool":"T","arguments":"[\n  1\n]"}`},
		{"nothing", `{}`, `null`},
		{"null", `null`, `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := FromArguments("T", json.RawMessage(tt.arguments))
			got, err := json.Marshal(d.Action())
			if err != nil || string(got) != tt.want {
				t.Errorf("got\n%s, want\n%s, %v", got, tt.want, err)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	text := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprint("line ", i))
	}
	changed := append([]string(nil), long...)
	changed[5], changed[30] = "five", "thirty"
	for _, tt := range []struct{ name, before, after, want string }{
		{"a new file", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"a file that goes", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"two hunks", text(long...), text(changed...),
			"@@ -3,7 +3,7 @@\n line 2\n line 3\n line 4\n-line 5\n+five\n line 6\n line 7\n line 8\n" +
				"@@ -28,7 +28,7 @@\n line 27\n line 28\n line 29\n-line 30\n+thirty\n line 31\n line 32\n line 33\n"},
		{"a newline at the end", "a", "a\n", "@@ a newline at the end is added @@\n"},
		{"nothing", "a", "a", "@@ nothing changes @@\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Change{Before: tt.before, After: tt.after, Line: 1}
			if diff := cmp.Diff(tt.want, c.diff()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLocate checks that a diff has the line numbers of the file in the agent's folder, and
// none if the place is not certain.
func TestLocate(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{filepath.Join(folder, "a"): "one\ntwo\nthree\ntwo\nfour", outside: "one\ntwo\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change Change
		want   string
	}{
		"a piece":             {Change{Path: "a", Before: "three\ntwo\n", After: "3\ntwo\n"}, "@@ -3,2 +3,2 @@\n-three\n+3\n two\n"},
		"with the whole path": {Change{Path: filepath.Join(folder, "a"), Before: "four", After: "4"}, "@@ -5 +5 @@\n-four\n+4\n"},
		"the whole file":      {Change{Path: "a", Before: "one\ntwo\nthree\ntwo\nfour", After: ""}, "@@ -1,5 +0,0 @@\n-one\n-two\n-three\n-two\n-four\n"},
		"a new file":          {Change{Path: "b", After: "x"}, "@@ -0,0 +1 @@\n+x\n"},
		"twice":               {Change{Path: "a", Before: "two", After: "2"}, "@@ @@\n-two\n+2\n"},
		"not there":           {Change{Path: "a", Before: "five", After: "5"}, "@@ @@\n-five\n+5\n"},
		"no such file":        {Change{Path: "c", Before: "one", After: "1"}, "@@ @@\n-one\n+1\n"},
		"the folder":          {Change{Path: ".", Before: "one", After: "1"}, "@@ @@\n-one\n+1\n"},
		"outside":             {Change{Path: outside, Before: "two", After: "2"}, "@@ @@\n-two\n+2\n"},
		"above":               {Change{Path: "../" + filepath.Base(filepath.Dir(outside)) + "/secret", Before: "two", After: "2"}, "@@ @@\n-two\n+2\n"},
		"a link to outside":   {Change{Path: "link", Before: "two", After: "2"}, "@@ @@\n-two\n+2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Draft{Changes: []Change{tt.change}}
			d.Locate(folder)
			if diff := cmp.Diff(tt.want, d.Changes[0].diff()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A comparison that would take too long shows all lines, and takes no time.
func TestDiffOfMuch(t *testing.T) {
	before, after := strings.Repeat("a\nb\n", 20000), strings.Repeat("b\nc\n", 20000)
	c := Change{Before: before, After: after}
	if d := c.diff(); strings.Count(d, "\n-") < 39999 || strings.Count(d, "\n+") < 39999 {
		t.Error("lines are missing")
	}
}

// The action says where bytes are left out, and how many. The end of a text is never left
// out.
func TestActionIsBounded(t *testing.T) {
	big := strings.Repeat("ä", 100<<10)
	d := Draft{Tool: big, Command: "echo " + big + "; rm -rf /", Folder: big, Note: big, Arguments: json.RawMessage(`"` + big + `"`)}
	for i := range 200 {
		d.Changes = append(d.Changes, Change{Path: fmt.Sprint(i), After: big + "\nthe end\n"})
		d.Locations = append(d.Locations, tapedeck.PermissionLocation{Path: fmt.Sprint(i)})
	}
	a := d.Action()
	raw, err := json.Marshal(a)
	if err != nil || len(raw) > 96<<10 {
		t.Fatalf("the action has %d bytes, %v", len(raw), err)
	}
	if !strings.HasSuffix(a.Command, "; rm -rf /") || !strings.Contains(a.Command, "bytes are left out here …]\n") {
		t.Errorf("the command ends with %q", a.Command[len(a.Command)-40:])
	}
	for _, c := range a.Changes {
		if !strings.HasSuffix(c.Diff, "the end\n") || !strings.Contains(c.Diff, "bytes are left out here …]\n") {
			t.Fatalf("the change of %s is %d bytes long and ends with %q", c.Path, len(c.Diff), c.Diff[len(c.Diff)-20:])
		}
	}
	if a.Cut == nil || *a.Cut < 200<<10 || a.More == nil || *a.More != 2*150 {
		t.Errorf("cut %v, more %v", a.Cut, a.More)
	}
	if err := payload.CheckData(&tapedeck.Event{Type: tapedeck.PermissionRequested, Data: json.RawMessage(`{"id":"p","action":` + string(raw) + `,"options":[]}`)}); err != nil {
		t.Error(err)
	}
}
