package procgroup

import (
	"os/exec"

	"github.com/tapedeck/tapedeck"
)

// Installed returns nil if the command of an agent can be started. It returns an error
// if the command is empty, or if the program is not installed. install is the hint of
// that error.
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
