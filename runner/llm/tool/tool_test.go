package tool_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// A bench is a folder and its tools.
type bench struct {
	t      *testing.T
	folder string
	tools  map[string]tool.Tool
}

// newBench makes a folder with files, and next to it a folder that no tool may reach.
func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	outside := t.TempDir()
	b := &bench{t: t, folder: filepath.Join(outside, "folder"), tools: map[string]tool.Tool{}}
	b.put("../secret.txt", "the secret\n")
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		b.put(name, text)
	}
	f, err := tool.OpenFolder(b.folder, tool.Options{Env: []string{"DECK_TEST_SEEN", "DECK_TEST_SET=set"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, u := range append(f.Tools(), tool.Todo()) {
		b.tools[u.Name] = u
	}
	return b
}

func (b *bench) put(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	text, err := os.ReadFile(filepath.Join(b.folder, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (b *bench) call(name, arguments string) tool.Result {
	return b.tools[name].Run(b.t.Context(), tool.Call{Arguments: json.RawMessage(arguments)})
}

func TestFiles(t *testing.T) {
	b := newBench(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "sub/b.go": "package b // Two\n", "sub/deep/c.go": "two\n", ".git/config": "two\n",
		"binary": "two\x00", "latin": "two\xff", "long.txt": strings.Repeat("x", 200<<10) + "\nend",
	})
	for _, tt := range []struct {
		tool, arguments, want string
		failed                bool
	}{
		{"list_files", `{}`, ".git/\na.txt\t14\nbinary\t4\nlatin\t4\nlong.txt\t204804\nsub/\n", false},
		{"list_files", `{"path":"sub","recursive":true}`, "sub/b.go\t17\nsub/deep/\nsub/deep/c.go\t4\n", false},
		{"list_files", `{"path":"none"}`, "none does not exist.", true},
		{"list_files", `{"path":"../folder"}`, "../folder is not a path in the folder.", true},
		{"read_file", `{"path":"../secret.txt"}`, "../secret.txt is not a path in the folder.", true},
		{"read_file", `{"path":"a.txt"}`, "one\ntwo\nthree\n", false},
		{"read_file", `{"path":"a.txt","offset":2,"limit":1}`, "two\n\n[lines 2 to 2 of 3]", false},
		{"read_file", `{"path":"a.txt","offset":9}`, "[the file has 3 lines]", false},
		{"read_file", `{"path":"binary"}`, "binary is not a file of UTF-8 text.", true},
		{"read_file", `{"path":"latin"}`, "latin is not a file of UTF-8 text.", true},
		{"read_file", `{"path":"sub"}`, "sub is not a file.", true},
		{"read_file", `{"path":"none"}`, "none does not exist.", true},
		{"read_file", `{"file":"a.txt"}`, `The arguments do not match the schema: they cannot have "file".`, true},
		{"read_file", `{"path":"long.txt"}`, strings.Repeat("x", 128<<10) + "…\n\n[lines 1 to 1 of 2]", false},
		{"read_file", fmt.Sprintf(`{"path":%q,"limit":1}`, filepath.Join(b.folder, "a.txt")), "one\n\n[lines 1 to 1 of 3]", false},
		{"search", `{"pattern":"(?i)two"}`, "a.txt:2:two\nlatin:1:two\uFFFD\nsub/b.go:1:package b // Two\nsub/deep/c.go:1:two\n", false},
		{"search", `{"pattern":"two","files":"*.go"}`, "sub/deep/c.go:1:two\n", false},
		{"search", `{"pattern":"two","files":"sub/*/*.go"}`, "sub/deep/c.go:1:two\n", false},
		{"search", `{"pattern":"two","path":"a.txt"}`, "a.txt:2:two\n", false},
		{"search", `{"pattern":"none"}`, "Nothing was found.", false},
		{"search", `{"pattern":"("}`, "The pattern is not a regular expression: error parsing regexp: missing closing ): `(`.", true},
		{"search", `{"pattern":"x","files":"["}`, "files is not a valid name pattern.", true},
		{"write_file", `{"path":"new/deep/x.txt","content":"hello"}`, "new/deep/x.txt has 5 bytes now.", false},
		{"read_file", `{"path":"new/deep/x.txt"}`, "hello", false},
		{"write_file", `{"path":"new/deep/x.txt","content":"he"}`, "new/deep/x.txt has 2 bytes now.", false},
		{"read_file", `{"path":"new/deep/x.txt"}`, "he", false},
		{"write_file", `{"path":"sub","content":""}`, "sub is not a file.", true},
		{"edit_file", `{"path":"a.txt","old":"two\n","new":"2\n"}`, "Replaced in 1 places.", false},
		{"edit_file", `{"path":"a.txt","old":"e","new":"E"}`, "a.txt has that piece 3 times. Add text around the piece, or set all.", true},
		{"edit_file", `{"path":"a.txt","old":"e","new":"E","all":true}`, "Replaced in 3 places.", false},
		{"edit_file", `{"path":"a.txt","old":"zz","new":""}`, "a.txt does not have that piece. Read it again.", true},
		{"edit_file", `{"path":"a.txt","old":"","new":"x"}`, "old is empty. Use write_file to make a file.", true},
		{"read_file", `{"path":"a.txt"}`, "onE\n2\nthrEE\n", false},
	} {
		got := b.call(tt.tool, tt.arguments)
		if diff := cmp.Diff(tool.Result{Text: tt.want, Failed: tt.failed}, got); diff != "" {
			t.Errorf("%s %s: %.500s", tt.tool, tt.arguments, diff)
		}
	}
}

// TestPathsStayInTheFolder checks that no arguments lead out of the folder.
func TestPathsStayInTheFolder(t *testing.T) {
	b := newBench(t, map[string]string{"in/x": ""})
	for name, target := range map[string]string{
		"link": "../secret.txt", "absolute": filepath.Dir(b.folder) + "/secret.txt", "up": "..", "in/loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(b.folder, name)); err != nil {
			t.Skip("there are no symbolic links here: ", err)
		}
	}
	paths := []string{
		"../secret.txt", "in/../../secret.txt", "link", "absolute", "up/secret.txt", "in/loop", "/etc/passwd", "..", "up",
		filepath.Dir(b.folder) + "/secret.txt", "in/\x00", "../new.txt", "up/new.txt",
	}
	for _, path := range paths {
		p := fmt.Sprintf(`{"path":%s`, quoted(path))
		for _, call := range [][2]string{
			{"read_file", p + `}`}, {"list_files", p + `,"recursive":true}`}, {"search", p + `,"pattern":"secret"}`},
			{"write_file", p + `,"content":"broken"}`}, {"edit_file", p + `,"old":"secret","new":"broken"}`},
		} {
			r := b.call(call[0], call[1])
			if strings.Contains(strings.ReplaceAll(r.Text, "secret.txt", ""), "secret") {
				t.Errorf("%s %s: %s", call[0], call[1], r.Text)
			}
			if !r.Failed && call[0] != "search" && call[0] != "list_files" {
				t.Errorf("%s %s was done: %s", call[0], call[1], r.Text)
			}
		}
	}
	if got := b.get("../secret.txt"); got != "the secret\n" {
		t.Errorf("it was changed: %s", got)
	}
	if _, err := os.Stat(filepath.Join(b.folder, "../new.txt")); err == nil {
		t.Error("a file was made outside")
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestLimits(t *testing.T) {
	b := newBench(t, nil)
	for i := range 2100 {
		b.put(fmt.Sprintf("f%04d", i), "hit\n")
	}
	if r := b.call("list_files", `{}`); strings.Count(r.Text, "\n") != 2001 || !strings.HasSuffix(r.Text, "There are more than 2000.\n") {
		t.Errorf("%d lines", strings.Count(r.Text, "\n"))
	}
	if r := b.call("search", `{"pattern":"hit"}`); strings.Count(r.Text, "\n") != 201 || !strings.Contains(r.Text, "There are more") {
		t.Errorf("%d lines", strings.Count(r.Text, "\n"))
	}
	if err := os.Truncate(filepath.Join(b.folder, "f0000"), 9<<20); err != nil {
		t.Fatal(err)
	}
	if r := b.call("read_file", `{"path":"f0000"}`); r.Text != "f0000 has more than 8 MiB. Use search, or a command." {
		t.Errorf("%.200s", r.Text)
	}
}

func TestTodo(t *testing.T) {
	b := newBench(t, nil)
	got := b.call("todo_write", `{"todos":[{"content":"a","status":"completed"},{"content":"b","activeForm":"bs","status":"in_progress","priority":"high"},{"content":"c","status":"cancelled"}]}`)
	want := tool.Result{Text: "The list is stored: 1 to do, 1 done.", Plan: []payload.PlanEntry{{Content: "a", Status: "completed"}, {Content: "b", Status: "in_progress", Priority: "high"}, {Content: "c", Status: "cancelled"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := b.call("todo_write", `{"todos":[]}`); got.Failed || got.Plan == nil {
		t.Errorf("an empty list is one, too: %+v", got)
	}
	for _, bad := range []string{`{"todos":[{"content":"a","status":"done"}]}`, `{"todos":7}`, `[]`, `{"todos":[` + strings.Repeat(`{"content":"a","status":"pending"},`, 500) + `{"content":"a","status":"pending"}]}`} {
		if got := b.call("todo_write", bad); !got.Failed || got.Plan != nil {
			t.Errorf("%.50s: %+v", bad, got)
		}
	}
}

// TestSchemas checks that every schema is valid, because providers refuse a request with
// an invalid one.
func TestSchemas(t *testing.T) {
	for name, u := range newBench(t, nil).tools {
		var s struct {
			Type       string
			Properties map[string]struct{ Type string }
			Required   []string
		}
		if err := json.Unmarshal(u.Parameters, &s); err != nil || s.Type != "object" || len(s.Properties) == 0 || s.Required == nil {
			t.Errorf("%s: %v %s", name, err, u.Parameters)
		}
		for _, r := range s.Required {
			if s.Properties[r].Type == "" {
				t.Errorf("%s: %s is required and has no type", name, r)
			}
		}
		if u.ReadOnly != (name != "write_file" && name != "edit_file" && name != "run_command") {
			t.Errorf("%s: read only is %v", name, u.ReadOnly)
		}
	}
}
