package procgroup

import (
	"github.com/tapedeck/tapedeck/payload"
)

// Identity returns what tells a process from any other of its id: when it began,
// and in which life of which machine. Both are "" if that cannot be found out, or
// there is no such process.
func Identity(pid int) (started, host string) {
	if started = startOf(pid); started == "" {
		return "", ""
	}
	return started, hostID()
}

// KillLeftover kills what is left of a process that an earlier server has started,
// with all that it has started, and waits for the end. It reports whether there
// was anybody. Of an identity that is not known, or is of another machine or
// another life of it, nothing is killed; nor is a process that only has the same
// id.
func KillLeftover(d payload.AgentStarted) (bool, error) {
	if d.PID <= 1 || d.Started == "" || d.Host == "" || d.Host != hostID() {
		return false, nil
	}
	return killLeftover(d)
}
