//go:build unix

package procgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestReasons: an agent learns why its program cannot be started, and what is known before it
// starts is said before it starts.
func TestReasons(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "#!/bin/sh\n", 0o700)
	write("plain", "#!/bin/sh\n", 0o600)
	write("lost", "#!/no/such/interpreter -x\n", 0o700)
	write("form", "no program", 0o700)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, folder, before, start string // before: what Installed says, if that is not what Start says
	}{
		{"a script", "./good", dir, "", ""},
		{"a program in the PATH", "sh", dir, "", ""},
		{"no such name", "no-such-agent", dir, "the program no-such-agent is not installed", "no program of this name is in the PATH"},
		{"no such file", "./absent", dir, "", "there is no such file"},
		{"no such whole path", filepath.Join(dir, "absent"), "", "", "there is no such file"},
		{"in the folder of this process only", "./find.go", dir, "", "there is no such file"},
		{"no right", "./plain", dir, "", "the server has no right to execute it"},
		{"a folder", "./folder", dir, "", "it is a folder"},
		{"no interpreter", "./lost", dir, "", "its first line names an interpreter that does not exist"},
		{"no program", "./form", dir, "-", "the system cannot execute a file of its form; a script begins with a line such as #!/bin/sh"},
		{"no such folder", "sh", filepath.Join(dir, "absent"), "", "its working folder does not exist"},
		{"a file as the folder", "sh", filepath.Join(dir, "good"), "", "its working folder is a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := ""
			if tt.start != "" {
				want = "the program " + tt.path + " cannot be started: " + tt.start
			}
			p, err := Start(Spec{Path: tt.path, Dir: tt.folder})
			if err == nil {
				err = p.Begin(nil)
				p.Stop(Ladder{})
			}
			got := ""
			if err != nil {
				got = Failed(tt.path, err).Error()
			}
			if got != want {
				t.Errorf("it starts: %q, want %q", got, want)
			}
			switch tt.before {
			case "":
			case "-": // only the system knows it
				want = ""
			default:
				want = tt.before
			}
			var e *tapedeck.Error
			err = Installed("x", []string{tt.path}, tt.folder, "get it")
			if errors.As(err, &e) != (want != "") || err != nil && (e.Message != want || e.Hint != "get it") {
				t.Errorf("before: %v, want %q", err, want)
			}
		})
	}
}
