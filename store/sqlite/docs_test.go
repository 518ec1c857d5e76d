package sqlite_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestDocumentedCommands runs every command of docs/storage.md while the store is
// open, and compares the output of some.
func TestDocumentedCommands(t *testing.T) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip("there is no sqlite3")
	}
	doc, err := os.ReadFile("../../docs/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "tapedeck-data"), sqlite.Options{})
	ctx := context.Background()
	say := func(text string) tapedeck.Event {
		return tapedeck.Event{Type: "TEXT_MESSAGE_CONTENT", Data: []byte(`{"messageId":"m","delta":"` + text + `"}`)}
	}
	for _, spec := range []tapedeck.Spec{
		{ID: "demo", Events: []tapedeck.Event{
			{Type: "session.created", Data: []byte(`{"title":"A talk"}`)}, {Type: "RUN_STARTED", Invocation: "i", Data: []byte(`{}`)}, say("Hello, "), say("world"),
		}},
		{ID: "fork", Parent: "demo"},
	} {
		if _, err := s.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"group_concat": "Hello, world\n",
		"GROUP BY":     "TEXT_MESSAGE_CONTENT|4\nsession.created|2\nRUN_STARTED|2\n",
		"parent <> ''": "fork|demo|4\n",
		"integrity":    "ok\n",
	}
	seen := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(doc, -1) {
		for line := range strings.Lines(string(block[1])) {
			if strings.HasPrefix(line, "tapedeck ") {
				continue // TestStorageCommands of cmd/tapedeck runs it
			}
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s%s%v", line, out, err)
			}
			if len(out) == 0 && !strings.Contains(line, "VACUUM") {
				t.Errorf("%sprints nothing", line)
			}
			for part, text := range want {
				if strings.Contains(line, part) {
					seen++
					if d := cmp.Diff(sorted(text), sorted(string(out))); d != "" {
						t.Errorf("%s(-want +got)\n%s", line, d)
					}
				}
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d commands were found", seen, len(want))
	}
	restored := filepath.Join(dir, "restored")
	if err := os.Mkdir(restored, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "backup.db"), filepath.Join(restored, "tapedeck.db")); err != nil {
		t.Fatal(err)
	}
	if n := count(t, open(t, restored, sqlite.Options{}), "fork"); n != 4 {
		t.Errorf("the backup has %d events of a fork, want 4", n)
	}
}

func sorted(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		lines[line] = true
	}
	return lines
}
