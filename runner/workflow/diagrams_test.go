package workflow

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

var (
	diagrams = flag.String("diagrams", "", "a folder with .bpmn files of other tools, which TestDiagramsOfOtherTools runs")
	update   = flag.Bool("update", false, "write the table of docs/workflows.md")
)

const document = "../../docs/workflows.md"

// TestDiagramsOfOtherTools runs the files of a folder, and compares the results with the
// table in docs/workflows.md. Without a folder it checks that most of the table ends.
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
		} else if got != table {
			t.Errorf("the table is not that of the page; write it with -update:\n%s", got)
		}
		table = got
	}
	count := map[string]int{}
	for line := range strings.Lines(table) {
		if result := tableRow.FindStringSubmatch(line); result != nil {
			count[result[1]]++
		} else if strings.HasPrefix(line, "| `") {
			t.Errorf("a row has no result: %s", line)
		}
	}
	rows := count["ends"] + count["refused: line "] + count["fails: "]
	if rows < 60 || count["ends"]*100 < rows*80 {
		t.Errorf("%d of %d diagrams end, want 80 %%", count["ends"], rows)
	}
	want := fmt.Sprintf("%d of %d diagrams", count["ends"], rows)
	if !strings.Contains(before+after, want) {
		t.Errorf("the page does not say %q", want)
	}
}

var tableRow = regexp.MustCompile("^\\| `.*\\| (ends|refused: line |fails: )")

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
		result := ""
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { result = resultOf(t, string(data)) })
		})
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSuffix(filepath.Base(file), ".bpmn"), writer(data), result)
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

// TestOwnDiagrams runs the diagrams of the repository: each ends. Those of the package
// bpmn have the forms of several tools; values that are all the same do not fit them, so
// they may fail.
func TestOwnDiagrams(t *testing.T) {
	files, _ := filepath.Glob("bpmn/testdata/*.bpmn")
	more, _ := filepath.Glob("testdata/*.bpmn")
	docs, _ := filepath.Glob("../../docs/workflows/*.bpmn")
	if files = slices.Concat(files, more, docs); len(files) < 10 {
		t.Fatalf("there are only %d diagrams", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				got := resultOf(t, string(data))
				if !strings.HasPrefix(got, "ends") && (!strings.HasPrefix(file, "bpmn") || !strings.HasPrefix(got, "fails: ")) {
					t.Error(got)
				}
			})
		})
	}
}

// resultOf runs a diagram: it ends, or fails with a sentence, or is refused with one. If
// the file has several processes, it takes the first that ends.
func resultOf(t *testing.T, xml string) string {
	t.Helper()
	a := attended(t, xml, "")
	var refused *bpmn.Error
	if errors.As(a.err, &refused) {
		for _, id := range refused.Processes {
			if one := attended(t, xml, id); one.err == nil {
				a = one
				break
			}
		}
	}
	var known *tapedeck.Error
	switch {
	case a.err == nil:
		return a.result()
	case errors.As(a.err, &refused):
		return "refused: " + cell(firstOf(a.err))
	case errors.As(a.err, &known) && a.state().Outcome != "":
		return "fails: " + cell(firstOf(a.err))
	}
	t.Errorf("%v, trace %s", a.err, a.trace())
	return ""
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

// An attendedRun is a run with people who answer with the defaults, agents that repeat
// their prompt, and other programs that send every message.
type attendedRun struct {
	*host
	err error
}

// result says with which flags the diagram ends, and how many warnings it has.
func (a *attendedRun) result() string {
	out := "ends"
	var flags []string
	if a.config.Process != "" {
		flags = append(flags, fmt.Sprintf("`--process %s`", a.config.Process))
	}
	for name, value := range a.config.Variables {
		flags = append(flags, fmt.Sprintf("`--var %s=%s`", name, strings.Trim(string(value), `"`)))
	}
	if slices.Sort(flags); flags != nil {
		out += ", with " + strings.Join(flags, " ")
	}
	switch n := len(a.definitions().Warnings); {
	case n == 1:
		out += ", 1 warning"
	case n > 1:
		out += fmt.Sprintf(", %d warnings", n)
	}
	return out
}

var missing = regexp.MustCompile(`uses the variable "?(\w+)"?, which does not exist`)

// attended runs a process with values for the variables that it needs. If it fails with
// some, it tries others, as a person would.
func attended(t *testing.T, xml, process string) *attendedRun {
	var first *attendedRun
	for _, value := range []any{1, 0, 100, true} {
		a := attendedWith(t, xml, process, value)
		if a.err == nil || len(a.config.Variables) == 0 {
			return a
		}
		if first == nil {
			first = a
		}
	}
	return first
}

// attendedWith runs a process, again with each variable that it misses.
func attendedWith(t *testing.T, xml, process string, value any) *attendedRun {
	given := []any{}
	for {
		h := newHost(t, xml, given...)
		h.config.Process, h.config.Agents = process, map[string]string{"*": "a"}
		a := &attendedRun{host: h}
		if a.err = h.attend(value); a.err == nil {
			return a
		}
		m := missing.FindStringSubmatch(a.err.Error())
		if m == nil || len(given) > 20 {
			return a
		}
		if given = append(given, m[1], value); strings.Contains(strings.ToLower(m[1]), "timeout") {
			given[len(given)-1] = "PT1H"
		}
	}
}

func firstOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// attend runs a process, with people and other programs that do what it waits for.
func (h *host) attend(value any) error {
	h.runner.options.MaxEntries = 100
	ctx, cancel := context.WithTimeout(context.Background(), 10*365*24*time.Hour)
	defer cancel()
	for _, name := range h.needed() {
		h.config.Variables[name] = encode(value)
	}
	if d := h.definitions(); d != nil {
		for n := range d.Reached() {
			if n.Agent != nil && n.Agent.Agent != "" {
				h.others = append(h.others, n.Agent.Agent)
			}
		}
	}
	if err := h.begin(ctx, ""); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.walk(ctx, "") }()
	for range 10_000 {
		synctest.Wait()
		select {
		case err := <-ended:
			return err
		default:
		}
		h.help()
		time.Sleep(time.Hour)
	}
	cancel()
	return errors.Join(errors.New("it does not end"), <-ended)
}

// help answers the questions and sends the messages that the process waits for.
func (h *host) help() {
	w := h.state()
	waits := w.Waits
	for _, a := range w.Activations {
		waits = append(waits, a.Waits...)
	}
	for _, wait := range waits {
		switch wait.For {
		case "user":
			h.send(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: wait.Permission, Option: "submit"}})
		case "message":
			h.send(payload.WorkflowMessage{Name: wait.Message, Correlation: wait.Correlation})
		}
	}
}

// definitions returns the diagram of a host, nil if it is refused.
func (h *host) definitions() *bpmn.Definitions {
	d, _ := bpmn.Read(strings.NewReader(h.config.BPMN), bpmn.Options{Process: h.config.Process})
	return d
}

// needed returns the variables that the start event requires and that have no default.
func (h *host) needed() (names []string) {
	d := h.definitions()
	if d == nil || d.Main.Start == nil || d.Main.Start.Form == nil {
		return nil
	}
	for _, f := range d.Main.Start.Form.Fields {
		if f.Required && f.Default == nil {
			names = append(names, f.ID)
		}
	}
	return names
}
