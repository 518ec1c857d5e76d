package procgroup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// These are indexes of fields of /proc/PID/stat. The count begins at the state, which
// follows the name.
const (
	statState  = 0
	statParent = 1
	statGroup  = 2
	statStart  = 19
)

// stat returns the fields of a process from its state on; nil if there is no such
// process. The name before them can have any characters, such as ") S 1", so stat
// looks for the last parenthesis.
func stat(pid string) []string {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil
	}
	_, rest, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) <= statStart {
		return nil
	}
	return fields
}

// startOf returns when a process began, in clock ticks since the machine started; ""
// if there is no such process, or if it is dead.
func startOf(pid int) string {
	f := stat(strconv.Itoa(pid))
	if f == nil || dead(f) {
		return ""
	}
	return f[statStart]
}

// dead reports whether a process has ended, also if its parent has not waited for it
// yet.
func dead(f []string) bool { return f[statState] == "Z" || f[statState] == "X" }

var hostID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// A member is a living process.
type member struct {
	pid, parent, group int
	started            string
}

// signal sends a signal to the process that was listed, and never to another process
// that has its id now. It takes a handle first, because a handle belongs to one
// process, and then compares the start.
func (m member) signal(s syscall.Signal) error {
	p, err := os.FindProcess(m.pid)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	if startOf(m.pid) != m.started {
		return nil
	}
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// livingProcesses returns all processes that have not ended.
func livingProcesses() []member {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var living []member
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if f := stat(name); f != nil && !dead(f) {
			parent, _ := strconv.Atoi(f[statParent])
			group, _ := strconv.Atoi(f[statGroup])
			living = append(living, member{pid, parent, group, f[statStart]})
		}
	}
	return living
}

// below returns the living descendants of a process.
func below(root int) (found []member) {
	all := livingProcesses()
	theirs := map[int]bool{root: true}
	for grown := true; grown; { // children may be listed before their parents
		grown = false
		for _, m := range all {
			if theirs[m.parent] && !theirs[m.pid] {
				theirs[m.pid], grown = true, true
				found = append(found, m)
			}
		}
	}
	return found
}
