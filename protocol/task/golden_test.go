package task_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

var update = flag.Bool("update", false, "write the responses into the conversations")

// Each conversation begins with prose. It continues with events that are appended to
// session s, one a line, and with requests and the responses to them. The clock stands
// still at the beginning of the year 2000, so that times can be compared.
func TestConversations(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no conversations")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converse(t, path) })
		})
	}
}

func converse(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, l := newHandler()
	out := txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		switch f.Name {
		case "append":
			appendLines(t, l, f.Data)
			out.Files = append(out.Files, f)
		case "request":
			response := apitest.Ask(t, h, f.Data, "Content-Type", "Cache-Control", "Vary", "Allow")
			out.Files = append(out.Files, f, txtar.File{Name: "response", Data: response})
		}
	}
	got := txtar.Format(&out)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(a)), string(got)); diff != "" {
		t.Errorf("%s(-want +got)\n%s", a.Comment, diff)
	}
}

// appendLines appends events. session.created creates the session.
func appendLines(t *testing.T, l log, lines []byte) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var e tapedeck.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e.Type == tapedeck.SessionCreated {
			l.create(t, e)
		} else {
			l.append(t, e)
		}
	}
}
