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

// Fields of /proc/PID/stat, counted from the state, which follows the name.
const (
	statState  = 0
	statParent = 1
	statGroup  = 2
	statStart  = 19
)

// stat returns the fields of a process from its state on, nil if there is none.
// Its name comes before them and may have anything in it, also ") S 1".
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

// startOf returns when a process began, in ticks since the machine did; "" if
// there is none, or it is dead.
func startOf(pid int) string {
	f := stat(strconv.Itoa(pid))
	if f == nil || dead(f) {
		return ""
	}
	return f[statStart]
}

// dead: a process that has ended and that its parent has not fetched yet.
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

// signal sends a signal to the process that was seen, and to no other that has
// its id now: the handle holds on to one process.
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

// everybody returns the living.
func everybody() []member {
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

// below returns the living that descend from a process.
func below(root int) (found []member) {
	all := everybody()
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
