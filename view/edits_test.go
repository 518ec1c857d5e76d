package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEditsOf reads the arguments of editors in the spellings of different
// agents.
func TestEditsOf(t *testing.T) {
	for _, tt := range []struct {
		tool, args string
		want       []edit
	}{
		{"edit", `{"file":"src/a.ts","old":"x","new":"y\nz"}`, []edit{{"src/a.ts", 2, 1}}}, // the coder agent of the demo
		{"edit_file", `{"path":"a","old":"x\ny\n","new":"x\n"}`, []edit{{"a", 0, 1}}},      // tools of llm agents
		{"write_file", `{"path":"a","content":"1\n2\n"}`, []edit{{"a", 2, 0}}},
		{"create_file", `{"filename":"a","contents":"1"}`, []edit{{"a", 1, 0}}},
		{"search_replace", `{"target_file":"a","search":"x","replace":"y"}`, []edit{{"a", 1, 1}}},
		{"str_replace_editor", `{"command":"insert","path":"a","insert_line":1,"insert_text":"x\n"}`, []edit{{"a", 1, 0}}},
		{"multi_edit", `{"file":"a","edits":[{"old":"x","new":"y"},{"oldStr":"1\n2","newStr":"1"}]}`, []edit{{"a", 1, 2}}},
		{"apply_diff", `{"path":"a","diff":"@@ -1 +1 @@\n-x\n+y\n+z\n"}`, []edit{{"a", 2, 1}}},
		{"apply_patch", `{"patch":"--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-x\n+y\n--- a/gone\t2026\n+++ /dev/null\n-z\n"}`, []edit{{"x.go", 1, 1}, {"gone", 0, 1}}},
		{"apply_patch", `{"patch":"*** Update File: a\n-- x\n--- y\n+z\n"}`, []edit{{"a", 1, 2}}},
		{"read_file", `{"file":"a","old":"x","new":"y"}`, nil},
		{"edit", `{"file":"a"}`, nil},
	} {
		if diff := cmp.Diff(tt.want, editsOf(isEditor(tt.tool), []byte(tt.args))); diff != "" {
			t.Errorf("%s %s (-want +got)\n%s", tt.tool, tt.args, diff)
		}
	}
}
