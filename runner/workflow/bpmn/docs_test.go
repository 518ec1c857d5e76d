package bpmn_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

var (
	diagrams = flag.String("diagrams", "", "a folder with .bpmn files of other tools; with -update, their results become the table of docs/workflows.md")
	update   = flag.Bool("update", false, "write the table of docs/workflows.md")
)

const document = "../../../docs/workflows.md"

// TestDiagramsOfOtherTools reads the files of a folder, and compares the results with
// the table in docs/workflows.md. Without a folder it checks that most of the table is
// accepted.
func TestDiagramsOfOtherTools(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- diagrams -->\n")
	table, after, ok2 := strings.Cut(rest, "<!-- /diagrams -->")
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	if *diagrams != "" {
		got := tableOf(t, *diagrams)
		if *update {
			if err := os.WriteFile(document, []byte(before+"<!-- diagrams -->\n"+got+"<!-- /diagrams -->"+after), 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			same(t, "table", table, got)
		}
		table = got
	}
	rows, accepted := 0, 0
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			rows++
			if strings.Contains(line, " | accepted") {
				accepted++
			} else if !strings.Contains(line, " | refused: line ") {
				t.Errorf("a row has no result: %s", line)
			}
		}
	}
	if rows < 60 || accepted*100 < rows*80 {
		t.Errorf("%d of %d diagrams are accepted, want 80 %%", accepted, rows)
	}
	if want := fmt.Sprintf("%d of %d", accepted, rows); !strings.Contains(before+after, want) {
		t.Errorf("the page does not say %q", want)
	}
}

func tableOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.bpmn"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no diagrams in %s: %v", folder, err)
	}
	slices.Sort(files)
	var b strings.Builder
	b.WriteString("| diagram | written with | result |\n|---|---|---|\n")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSuffix(filepath.Base(file), ".bpmn"), writer(data), result(t, data))
	}
	return b.String()
}

var exporterPattern = regexp.MustCompile(`exporter(?:Version)?="([^",]*)`)

// writer returns the program that wrote a file, as the file says.
func writer(data []byte) string {
	var out []string
	for _, m := range exporterPattern.FindAllSubmatch(data[:min(len(data), 4000)], -1) {
		out = append(out, string(m[1]))
	}
	slices.Reverse(out)
	if len(out) == 2 && out[0] != "" && out[0][0] >= '0' && out[0][0] <= '9' {
		slices.Reverse(out)
	}
	return strings.TrimSpace(strings.Join(out, " "))
}

// result reads a file. If the file has several processes that could run, it takes the
// first that can.
func result(t *testing.T, data []byte) string {
	t.Helper()
	d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{})
	chosen := ""
	var e *bpmn.Error
	if errors.As(err, &e) && strings.Contains(err.Error(), "processes that could run") {
		_, names, _ := strings.Cut(e.Problems[0].Hint, "the processes are ")
		for name := range strings.SplitSeq(names, ", ") {
			if other, err2 := bpmn.Read(bytes.NewReader(data), bpmn.Options{Process: name}); err2 == nil {
				d, err, chosen = other, nil, name
				break
			}
		}
	}
	if errors.As(err, &e) {
		p := e.Problems[0]
		text := p.String()
		if n := len(e.Problems) - 1 + e.More; n > 0 {
			text += fmt.Sprintf(" (and %d more)", n)
		}
		return "refused: " + strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
	}
	checkModel(t, d)
	out := "accepted"
	if chosen != "" {
		out += fmt.Sprintf(" with `--process %s`", chosen)
	}
	switch n := len(d.Warnings); {
	case n == 1:
		out += ", 1 warning"
	case n > 1:
		out += fmt.Sprintf(", %d warnings", n)
	}
	return out
}

// TestExamples reads the diagrams of the documentation, which have neither problems nor
// warnings.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../docs/workflows/*.bpmn")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{})
		if err != nil {
			t.Fatalf("%s: %s", file, problems(err))
		}
		checkModel(t, d)
		same(t, file, warnings(d), []string(nil))
	}
}

var xmlBlock = regexp.MustCompile("(?s)```xml\n(.*?)```")

// TestDocument reads the examples of docs/workflows.md, each of which is a task.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	blocks := xmlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 4 {
		t.Fatalf("the page has only %d examples", len(blocks))
	}
	for _, b := range blocks {
		inside := strings.ReplaceAll(b[1], "bpmn:", "")
		d, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
		if err != nil {
			t.Errorf("%s\n%s", b[1], problems(err))
			continue
		}
		same(t, b[1], warnings(d), []string(nil))
	}
}
