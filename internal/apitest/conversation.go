package apitest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the server sends into the conversations")

// Conversations compares each file testdata/*.txtar with what a protocol does now. A file
// begins with prose. It continues with what clients send and what they receive. converse
// plays a conversation, given its name and its files, and returns the files with what is
// received now. With the flag -update the file is written instead.
func Conversations(t *testing.T, converse func(t *testing.T, name string, files []txtar.File) []txtar.File) {
	t.Helper()
	paths, _ := filepath.Glob("testdata/*.txtar") // the pattern is valid
	if len(paths) == 0 {
		t.Fatal("no conversations")
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			now := &txtar.Archive{Comment: a.Comment, Files: converse(t, name, a.Files)}
			switch {
			case t.Failed(): // now is not complete
			case *update:
				if err := os.WriteFile(path, txtar.Format(now), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(now))); diff != "" {
					t.Errorf("%s(-want +got)\n%s", a.Comment, diff)
				}
			}
		})
	}
}
