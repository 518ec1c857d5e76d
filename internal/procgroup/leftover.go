package procgroup

import (
	"github.com/tapedeck/tapedeck/payload"
)

// Identity returns what distinguishes a process from any other process with the same
// id: when it began, and the boot of the machine on which it runs. Both are "" if they
// cannot be found, or if there is no such process.
func Identity(pid int) (started, host string) {
	if started = startOf(pid); started == "" {
		return "", ""
	}
	return started, hostID()
}

// KillLeftover kills a process that an earlier server started, with all processes that
// it started, and waits for their end. It reports whether it found any. It kills
// nothing if the identity is unknown, if it belongs to another machine or to an earlier
// boot, or if only the process id is the same.
func KillLeftover(d payload.AgentStarted) (bool, error) {
	if d.PID <= 1 || d.Started == "" || d.Host == "" || d.Host != hostID() {
		return false, nil
	}
	return killLeftover(d)
}
