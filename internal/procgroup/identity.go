package procgroup

// Identity returns what tells a process from any other of its id: when it began,
// and in which life of which machine. Both are "" if that cannot be found out.
func Identity(pid int) (started, host string) {
	if started = startOf(pid); started == "" {
		return "", ""
	}
	return started, hostID()
}

// KillLeftover kills the group that a process led, if it is the one that
// [Identity] told of, and waits for its end. It reports whether it killed
// anybody. A group whose leader has gone is the leader's still: the system gives
// no new process the id of a group that exists. Of an identity that is not known,
// or is of another machine or another life of it, nothing is killed.
func KillLeftover(pid int, started, host string) (bool, error) {
	if pid <= 1 || started == "" || host == "" || host != hostID() {
		return false, nil
	}
	if now := startOf(pid); now != "" && now != started {
		return false, nil
	}
	return killLeftover(pid, started)
}
