package agentconfig

import (
	"reflect"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
)

// TestConfine checks what becomes of the settings of a sandbox.
func TestConfine(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	hide := Secrets{Hidden: []string{"/data"}, Work: "/work"}
	limits := procgroup.Limits{Memory: sandbox.DefaultMemory, Processes: sandbox.DefaultProcesses, Output: sandbox.DefaultOutput}
	plain := sandbox.Policy{Hidden: hide.Hidden, Others: hide.Work, Limits: limits, File: sandbox.DefaultFile}
	all := sandbox.Policy{
		Network: true, Writable: []string{"/home/ada/.agent"}, Readable: []string{"/base/lib", "/opt/tools"}, Env: []string{"KEY"},
		Hidden: hide.Hidden, Others: hide.Work, File: 1000,
		Limits: procgroup.Limits{Time: time.Minute, Memory: 2 << 30, Processes: 9, Output: 1 << 20},
	}
	for text, want := range map[string]*sandbox.Policy{
		"":                       nil,
		`sandbox = "bubblewrap"`: &plain,
		`sandbox = "bubblewrap"
[agent.confine]
network = true
writable = ["~/.agent"]
readable = ["lib", "/opt/tools/"]
env = ["KEY"]
memory = "2GiB"
processes = 9
output = "1MiB"
file = "1KB"
time = "1m"`: &all,
	} {
		c, err := parse("x.toml", []byte("[[agent]]\nname = \"a\"\nkind = \"process\"\ncommand = \"c\"\ndialect = \"codex\"\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.agents[0].confined("/base", hide); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}
