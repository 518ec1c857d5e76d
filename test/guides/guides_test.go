package guides

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestGuides runs the commands of every guide and of the README with the real program,
// each page on its own data folder, and compares their output with the page. A page has
// blocks of this form:
//
//	```console
//	$ tapedeck create notes
//	notes
//	$ tapedeck run "say hello" --session notes
//	session notes
//	…
//	```
//
// In the output, … matches any text on a line, or any lines if it is alone. An id that
// ends with …, such as inv_01…, stands for the printed id, also in later commands. A
// line that begins with > continues the command. If a command fails, its output ends
// with a line such as (exit code 1).
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d guides, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md") {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			steps := read(string(text))
			if len(steps) == 0 && filepath.Base(page) != "README.md" {
				t.Fatal("the guide shows no command")
			}
			play(t, steps)
		})
	}
}

// A step is a command and its expected output.
type step struct {
	line    int
	command string
	output  []string
}

// read returns the steps of a page.
func read(page string) (steps []step) {
	inside := false
	for i, l := range strings.Split(page, "\n") {
		switch {
		case l == "```console":
			inside = true
		case l == "```":
			inside = false
		case !inside:
		case strings.HasPrefix(l, "$ "):
			steps = append(steps, step{line: i + 1, command: l[2:]})
		case len(steps) == 0:
		case strings.HasPrefix(l, "> ") && len(steps[len(steps)-1].output) == 0:
			steps[len(steps)-1].command += "\n" + l[2:]
		default:
			s := &steps[len(steps)-1]
			s.output = append(s.output, strings.TrimRight(l, " "))
		}
	}
	return steps
}

// stepTime is how long a command of a page may take on a slow machine.
const stepTime = 3 * time.Minute

func play(t *testing.T, steps []step) {
	dir, ids := t.TempDir(), ids{}
	path := filepath.Dir(program(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(t.Context(), stepTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", ids.fill(s.command))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+path, "TAPEDECK_DATA="+filepath.Join(dir, "data"), "TAPEDECK_URL=", "TAPEDECK_WORK="+filepath.Join(dir, "work"), "ENABLE_CONTEXT_PERSISTENCE=")
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("line %d: %s\ndoes not end; it has printed\n%s", s.line, s.command, out)
		}
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			out = fmt.Appendf(out, "(exit code %d)\n", exit.ExitCode())
		} else if err != nil {
			t.Fatal(err)
		}
		if !ids.match(s.output, string(out)) {
			t.Fatalf("line %d: %s\nprints\n%s\nwant\n%s", s.line, s.command, out, strings.Join(s.output, "\n"))
		}
	}
}

// program returns the path of the program. Its name is tapedeck, as in the guides.
func program(t *testing.T) string {
	bin := testserver.Binary(t)
	if filepath.Base(bin) == "tapedeck" {
		return bin
	}
	link := filepath.Join(t.TempDir(), "tapedeck")
	if abs, err := filepath.Abs(bin); err != nil || os.Symlink(abs, link) != nil {
		t.Fatalf("%s cannot be linked: %v", bin, err)
	}
	return link
}

// ids maps the ids of a page to the printed ones.
type ids map[string]string

var (
	idPattern = regexp.MustCompile(`\b([a-z]{3})_[0-9A-Z]+…`)
	oneOrMore = regexp.MustCompile(`^…$`)
)

// fill replaces the ids of the page in a command by the printed ones.
func (x ids) fill(command string) string {
	return idPattern.ReplaceAllStringFunc(command, func(id string) string {
		if real, ok := x[id]; ok {
			return real
		}
		return id
	})
}

// match reports whether got matches the lines of a page, and learns its ids.
func (x ids) match(want []string, got string) bool {
	var pattern bytes.Buffer
	var learned []string
	pattern.WriteString(`\A`)
	for _, l := range want {
		if oneOrMore.MatchString(l) {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		for l != "" {
			at := idPattern.FindStringIndex(l)
			if at == nil {
				at = []int{len(l), len(l)}
			}
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(l[:at[0]]), "…", `[^\n]*`))
			if id := l[at[0]:at[1]]; id != "" {
				learned = append(learned, id)
				pattern.WriteString("(" + id[:4] + "[0-9A-Za-z]+)")
			}
			l = l[at[1]:]
		}
		pattern.WriteString(` *\n`)
	}
	pattern.WriteString(`\z`)
	found := regexp.MustCompile(pattern.String()).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, id := range learned {
		if known, ok := x[id]; ok && known != found[i+1] {
			return false
		}
		x[id] = found[i+1]
	}
	return true
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		want string
		got  string
		ok   bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"a", "a\n", true},
		{"a", "a\nb\n", false},
		{"a\n…", "a\nb\nc\n", true},
		{"a\n…", "a\n", true},
		{"…\nc", "a\nb\n", false},
		{"took … s", "took 3 s\n", true},
		{"took … s", "took\n3 s\n", false},
		{"at ses_01… and ses_01…", "at ses_X and ses_X\n", true},
		{"at ses_01… and ses_01…", "at ses_X and ses_Y\n", false},
		{"ses_01… ses_02…", "ses_X ses_Y\n", true},
		{"a.c", "abc\n", false},
	} {
		x := ids{}
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "\n")
		}
		if got := x.match(want, c.got); got != c.ok {
			t.Errorf("%q of %q: %v", c.got, c.want, got)
		}
	}
	x := ids{}
	x.match([]string{"made inv_01…"}, "made inv_REAL\n")
	if got := x.fill("undo inv_01… inv_02…"); got != "undo inv_REAL inv_02…" {
		t.Error(got)
	}
}
