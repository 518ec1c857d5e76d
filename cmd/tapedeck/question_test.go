package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// A question shows all of what it is about, however long, and nothing that it says
// can move the cursor.
func TestQuestionLines(t *testing.T) {
	long := strings.Repeat("x", 500)
	q := tapedeck.PermissionRequestedData{
		Message: "May the agent call Bash?",
		Action: &tapedeck.PermissionAction{
			Tool: "Bash", Command: "echo " + long + "\n\x1b[2J\u202Edocker system prune", Folder: "/w",
			Changes:   []tapedeck.PermissionChange{{Path: "a.go", Diff: "@@ -1 +1 @@\n-a\n+b\n"}},
			Locations: []tapedeck.PermissionLocation{{Path: "/w/a.go", Line: new(int64(7))}, {Path: "b"}},
			Arguments: "{\n  \"timeout\": 5\n}", Note: "tidy up", Cut: new(int64(12)), More: new(int64(1)),
		},
		Options: []tapedeck.PermissionOption{{ID: "once", Name: "Allow once"}, {ID: "always", Name: "Always", Covers: "every call"}, {ID: "no"}},
	}
	var got []string
	for _, l := range questionLines(&q) {
		got = append(got, l.text)
	}
	want := []string{
		"May the agent call Bash?", "$ echo " + long, "  \uFFFD[2J\uFFFDdocker system prune", "in /w", "changes a.go", "  @@ -1 +1 @@", "  -a", "  +b",
		"file /w/a.go:7", "file b", "arguments {", `    "timeout": 5`, "  }", "the agent says: tidy up",
		"12 bytes of this are not shown", "1 file more, not shown", "1 Allow once", "2 Always: every call", "3 no",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
