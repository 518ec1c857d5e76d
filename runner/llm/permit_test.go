package llm_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// asks runs a task in a folder and answers every question with the option. It returns
// the questions.
func asks(t *testing.T, folder, text, option string) (asked []tapedeck.Question) {
	t.Helper()
	in := task(text)
	in.Folder = folder
	in.Ask = func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		asked = append(asked, q)
		return tapedeck.Choice{ID: q.ID, Option: option}, nil
	}
	for _, err := range newWorld().runner().Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return asked
}

// TestAlways checks that "Always allow" permits what the option says, and nothing more.
func TestAlways(t *testing.T) {
	for _, tt := range []struct {
		name, task string
		covers     []string // Covers of the questions
	}{
		{
			"commands", `[tool run_command {"command":"true"}] [tool run_command {"command":"true"}] [tool run_command {"command":"echo rm -rf x"}]`,
			[]string{"this exact command", "this exact command"},
		},
		{
			"files", `[tool write_file {"path":"a","content":"1"}] [tool write_file {"path":"./a","content":"2"}] [tool write_file {"path":"b","content":"3"}] [tool edit_file {"path":"a","old":"2","new":"4"}]`,
			[]string{"every write_file of a", "every write_file of b", "every edit_file of a"},
		},
		{
			"arguments that do not fit", `[tool run_command {"cmd":"true"}] [tool run_command {"command":5}] [tool write_file {"path":"a"}] [tool run_command {"command":"true","timeout":0}]`,
			nil,
		},
		{
			"files that cannot be written", `[tool write_file {"path":"../../x","content":""}] [tool write_file {"path":".","content":""}] [tool write_file {"path":"up/x","content":""}] [tool edit_file {"path":"none","old":"a","new":"b"}] ` +
				`[tool write_file {"path":"in/new","content":"1"}] [tool write_file {"path":"in/new/x","content":""}] [tool edit_file {"path":"in/new","old":"2","new":"3"}] [tool edit_file {"path":"in/new","old":"","new":"3"}]`,
			[]string{"every write_file of in/new"},
		},
		{
			"a member without a value", `[tool run_command {"command":"true","timeout":null}]`,
			[]string{"this exact command"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var covers []string
			dir := t.TempDir()
			if err := os.Symlink(filepath.Dir(dir), filepath.Join(dir, "up")); err != nil {
				t.Skip("there are no symbolic links here: ", err)
			}
			for _, q := range asks(t, dir, tt.task, "allow_always") {
				covers = append(covers, q.Options[1].Covers)
				if q.Options[1].Name != "Always allow "+q.Options[1].Covers {
					t.Errorf("the option says %q", q.Options[1].Name)
				}
			}
			for i := range tt.covers {
				tt.covers[i] += ", until this run ends"
			}
			if !slices.Equal(covers, tt.covers) {
				t.Errorf("asked for %q, want %q", covers, tt.covers)
			}
		})
	}
}

// TestQuestionShowsTheAction checks that a question shows the command and the change.
func TestQuestionShowsTheAction(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := asks(t, dir, `[tool run_command {"command":"rm a","timeout":9}] [tool edit_file {"path":"a","old":"two","new":"2"}] [tool write_file {"path":"a","content":"one\n"}] [tool write_file {"path":"b","content":"new\n"}]`, "reject_once")
	if len(asked) != 4 {
		t.Fatalf("asked %d times", len(asked))
	}
	if a := asked[0].Action; a.Command != "rm a" || a.Folder != dir || a.Arguments != "{\n  \"timeout\": 9\n}" || a.Tool != "run_command" {
		t.Errorf("the command is shown as %+v", a)
	}
	for i, want := range map[int]tapedeck.PermissionChange{
		1: {Path: "a", Diff: "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"},
		2: {Path: "a", Diff: "@@ -1,3 +1 @@\n one\n-two\n-three\n"},
		3: {Path: "b", Diff: "@@ -0,0 +1 @@\n+new\n"},
	} {
		if c := asked[i].Action.Changes; len(c) != 1 || c[0].Path != want.Path || c[0].Diff != want.Diff {
			t.Errorf("the change is shown as %+v, want %+v", c, want)
		}
	}
}

// TestRefusal: the model reads in plain words why a call was not made.
func TestRefusal(t *testing.T) {
	for call, want := range map[string]string{
		`run_command {"command":5}`:                                             "The arguments do not match the schema: command must be a string, not an integer.",
		`run_command {"command":"true","timeout":1e30}`:                         "The arguments do not match the schema: timeout cannot be number 1e30.",
		`run_command {"cmd":"true"}`:                                            `The arguments do not match the schema: the arguments cannot have "cmd".`,
		`run_command {}`:                                                        `The arguments do not match the schema: the arguments must have "command".`,
		`todo_write {"todos":[{"content":"a","status":1}]}`:                     "The arguments do not match the schema: todos[].status must be a string, not an integer.",
		`todo_write {"todos":[{"content":"a","status":"completed","by":"me"}]}`: `The arguments do not match the schema: they cannot have "by".`,
		`write_file {"path":"../../x","content":""}`:                            "../../x is not a path in the folder.",
		`edit_file {"path":"none","old":"a","new":"b"}`:                         "none does not exist.",
	} {
		in := task("[tool " + call + "]")
		in.Folder = t.TempDir()
		got := summary(collect(t.Context(), newWorld().runner(), in))
		if name, _, _ := strings.Cut(call, " "); !strings.Contains(got, "failed "+name+": "+want+"\n") {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
