package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// A question is shown completely, however long it is, without characters that are
// hidden or move the cursor. The effect of an option comes from its kind.
func TestQuestionLines(t *testing.T) {
	long := strings.Repeat("x", 500)
	q := tapedeck.Question{
		Message: "May the agent call Bash?",
		Action: &tapedeck.PermissionAction{
			Tool: "Bash", Command: "echo " + long + "\n\x1b[2J\u202Edocker\u200B system\u00AD \U000E0041prune", Folder: "/w",
			Changes:   []tapedeck.PermissionChange{{Path: "a.go", Diff: "@@ -1 +1 @@\n-a\n+b\n"}},
			Locations: []tapedeck.PermissionLocation{{Path: "/w/a.go", Line: new(int64(7))}, {Path: "b"}},
			Arguments: "{\n  \"timeout\": 5\n}", Note: "tidy up", Cut: new(int64(12)), More: new(int64(1)),
		},
		Options: []tapedeck.PermissionOption{
			{ID: "once", Name: "Reject", Kind: "allow_always"}, {ID: "always", Name: "Al\nways", Kind: "allow_always", Covers: "every call"},
			{ID: "no", Kind: "reject_once"}, {ID: "n\u3164o", Kind: "odd"},
		},
	}
	var got []string
	for _, l := range QuestionLines(&q) {
		got = append(got, l.Text)
	}
	want := []string{
		"May the agent call Bash?", "$ echo " + long, "  ⟨U+001B⟩[2J⟨U+202E⟩docker⟨U+200B⟩ system⟨U+00AD⟩ ⟨U+E0041⟩prune", "in /w", "changes a.go", "  @@ -1 +1 @@", "  -a", "  +b",
		"file /w/a.go:7", "file b", "arguments {", `    "timeout": 5`, "  }", "the agent says: tidy up",
		"12 bytes of this are not shown", "1 file more, not shown", "1 Reject (allows always)", "2 Al ways (allows always): every call", "3 no (rejects once)", "4 n⟨U+3164⟩o",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
