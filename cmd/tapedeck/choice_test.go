package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/internal/testmodel"
)

// A fixture is a data folder with an agent whose model is scripted by its task.
type fixture struct {
	t      *testing.T
	data   string
	config string
}

func newFixture(t *testing.T) *fixture {
	model := httptest.NewServer(testmodel.New(testmodel.Options{}))
	t.Cleanup(model.Close)
	h := &fixture{t, t.TempDir(), filepath.Join(t.TempDir(), "agents.toml")}
	text := fmt.Sprintf("[[agent]]\nname = \"bot\"\nkind = \"llm\"\nurl = %q\nmodel = \"m\"\n", model.URL+"/v1")
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs the program.
func (h *fixture) run(args ...string) (out, errs string, code int) {
	var stdout, stderr bytes.Buffer
	args = append([]string{"--data", h.data, "--config", h.config}, args...)
	code = Main(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// wrote reports whether the agent has written its file in the session that run printed.
func (h *fixture) wrote(stderr string) bool {
	m := regexp.MustCompile(`session (\S+)`).FindStringSubmatch(stderr)
	if m == nil {
		h.t.Fatalf("there is no session in %q", stderr)
	}
	_, err := os.Stat(filepath.Join(workPlace(h.data), workName, m[1], "x.txt"))
	return err == nil
}

const writeTask = `[tool write_file {"path":"x.txt","content":"y"}]`

func TestPermissionsOfRun(t *testing.T) {
	h := newFixture(t)
	for how, want := range map[string]bool{"allow": true, "deny": false} {
		out, errs, code := h.run("run", writeTask, "--permissions", how)
		if code != exitDone || h.wrote(errs) != want || !strings.Contains(out, "? May the agent call write_file?\n    changes x.txt\n      @@ -0,0 +1 @@\n      +y\n    1 Allow once (allows once)\n") {
			t.Errorf("%s: code %d\n%s\n%s", how, code, out, errs)
		}
	}
}

// A question of an agent can be answered by another process.
func TestAnswerElsewhere(t *testing.T) {
	h := newFixture(t)
	var stderr signalled
	stderr.wanted, stderr.seen = "answer with: tapedeck answer ", make(chan struct{})
	done := make(chan int)
	var stdout bytes.Buffer
	go func() {
		done <- Main(context.Background(), []string{"--data", h.data, "--config", h.config, "run", writeTask}, strings.NewReader(""), &stdout, &stderr)
	}()
	select {
	case <-stderr.seen:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the agent asked nothing: %s", &stderr)
	}
	m := regexp.MustCompile(`tapedeck answer (\S+) (\S+) OPTION --at \d+ \((\S+),`).FindStringSubmatch(stderr.String())
	if m == nil {
		t.Fatalf("the output does not say how to answer: %s", &stderr)
	}
	out, errs, _ := h.run("--json", "permissions", m[1])
	var p struct {
		ID      string
		Options []tapedeck.PermissionOption
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.ID != m[2] {
		t.Fatalf("the permissions are %s%s, %v", out, errs, err)
	}
	if out, _, _ := h.run("permissions", m[1]); !strings.Contains(out, "  changes x.txt\n    @@ -0,0 +1 @@\n    +y\n") {
		t.Errorf("the question is listed as\n%s", out)
	}
	option, _ := chooseOption(p.Options, permitAllow)
	if out, errs, code := h.run("answer", m[1], m[2], option); code != exitDone {
		t.Fatalf("%s%s", out, errs)
	}
	if code := <-done; code != exitDone || !h.wrote(stderr.String()) {
		t.Errorf("code %d\n%s\n%s", code, &stdout, &stderr)
	}
}

// A signalled buffer closes a channel when a text was written.
type signalled struct {
	mu     sync.Mutex
	text   bytes.Buffer
	wanted string
	seen   chan struct{}
}

func (s *signalled) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text.String(), s.wanted)
	n, err := s.text.Write(b)
	if !before && strings.Contains(s.text.String(), s.wanted) {
		close(s.seen)
	}
	return n, err
}

func (s *signalled) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestTyped(t *testing.T) {
	options := []tapedeck.PermissionOption{{ID: "always", Kind: "allow_always"}, {ID: "once", Kind: "allow_once"}, {ID: "never", Kind: "reject_once"}}
	for line, want := range map[string]string{
		"1": "always", "3": "never", "y": "once", "YES": "once", "n": "never", "0": "", "4": "", "": "", "maybe": "", "-1": "",
	} {
		if got, ok := typedOption(options, line); got != want || ok != (want != "") {
			t.Errorf("%q means %q", line, got)
		}
	}
	if _, ok := chooseOption(options[:2], permitDeny); ok {
		t.Error("it was denied without an option for that")
	}
}

// An offset before the first one is refused.
func TestAnswerAtNoOffset(t *testing.T) {
	h := newFixture(t)
	if _, errs, code := h.run("answer", "s", "p", "o", "--at", "-5"); code != exitUsage || !strings.Contains(errs, "--at takes the offset") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// A question is printed with all its options and without hidden characters.
func TestPermissionsArePrinted(t *testing.T) {
	q := tapedeck.Question{
		ID: "perm_1", Message: "May the agent call Bash?",
		Action:  &tapedeck.PermissionAction{Command: "echo\n\x1b[2J\u202Edocker\u200B system"},
		Options: []tapedeck.PermissionOption{{ID: "once", Name: "Reject", Kind: "allow_always"}, {ID: "n\u3164o", Kind: "odd"}},
	}
	var out strings.Builder
	if err := (&env{stdout: &out}).printPermission(&q, 7); err != nil || terminal.Visible(out.String()) != out.String() ||
		!strings.Contains(out.String(), "\n  once: Reject (allows always)\n") || !strings.Contains(out.String(), "docker⟨U+200B⟩ system") {
		t.Errorf("tapedeck permissions prints\n%s, %v", out.String(), err)
	}
}
