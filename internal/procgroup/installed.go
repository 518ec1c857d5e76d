package procgroup

import (
	"os/exec"

	"github.com/tapedeck/tapedeck"
)

// Installed reports why the command of an agent cannot be started: there is none,
// or no such program; install says how to get it.
func Installed(agent string, command []string, install string) error {
	if len(command) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has no command", agent)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		e := tapedeck.Errorf(tapedeck.Unavailable, "the program %s is not installed", command[0]).Because(err)
		e.Hint = install
		return e
	}
	return nil
}
