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
	q.Form = []tapedeck.FormField{
		{ID: "open", Default: []byte(`"not shown"`)}, {ID: "n", ReadOnly: true, Default: []byte(`[1,2]`)},
		{ID: "d", Label: "Dra\x1bft", ReadOnly: true, Default: []byte(`"one\u001b[2J\ntwo\n"`)}, {ID: "none", ReadOnly: true},
	}
	var got []string
	for _, l := range QuestionLines(&q) {
		got = append(got, l.Text)
	}
	want := []string{
		"May the agent call Bash?", "$ echo " + long, "  ⟨U+001B⟩[2J⟨U+202E⟩docker⟨U+200B⟩ system⟨U+00AD⟩ ⟨U+E0041⟩prune", "in /w", "changes a.go", "  @@ -1 +1 @@", "  -a", "  +b",
		"file /w/a.go:7", "file b", "arguments {", `    "timeout": 5`, "  }", "the agent says: tidy up",
		"12 bytes of this are not shown", "1 file more, not shown", "n: [1,2]", "Dra⟨U+001B⟩ft: ", "  one⟨U+001B⟩[2J", "  two", "none: ",
		"1 Reject (allows always)", "2 Al ways (allows always): every call", "3 no (rejects once)", "4 n⟨U+3164⟩o",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// If the form is the only answer, the question shows no option.
func TestOnlyAnswer(t *testing.T) {
	q := tapedeck.Question{Message: "Approve", Options: []tapedeck.PermissionOption{{ID: "submit", Name: "Submit", Kind: "allow_once"}}}
	text := func() string {
		var out []string
		for _, l := range QuestionLines(&q) {
			out = append(out, l.Text)
		}
		return strings.Join(out, "|")
	}
	if got := text(); got != "Approve|1 Submit (allows once)" {
		t.Errorf("without a form: %s", got)
	}
	q.Form = []tapedeck.FormField{{ID: "ok", Type: "boolean"}, {ID: "draft", ReadOnly: true, Default: []byte(`"x"`)}}
	if got := text(); got != "Approve|draft: x" {
		t.Errorf("with a form: %s", got)
	}
	q.Action = &tapedeck.PermissionAction{Command: "rm"}
	if got := text(); got != "Approve|$ rm|draft: x|1 Submit (allows once)" {
		t.Errorf("with an action: %s", got)
	}
}
