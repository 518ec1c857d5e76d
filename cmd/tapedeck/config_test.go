package main

import (
	"os"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
)

// TestConfigOfTheFolderIsAnnounced: the file in the working folder may be part of code
// from somebody else. A command that runs agents says that it uses the file.
func TestConfigOfTheFolderIsAnnounced(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(agentconfig.FileName, []byte("[[agent]]\nname = \"a\"\nkind = \"script\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TAPEDECK_DATA", t.TempDir())
	for _, c := range []struct {
		named  string
		starts bool
		want   bool
	}{{"", true, true}, {"", false, false}, {agentconfig.FileName, true, false}} {
		var stderr strings.Builder
		e := &env{stderr: &stderr, config: c.named, startsAgents: c.starts}
		if _, err := e.readConfig(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(stderr.String(), "./"+agentconfig.FileName); got != c.want {
			t.Errorf("%+v: it printed %q", c, &stderr)
		}
	}
}
