package procgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Fields of /proc/PID/stat, counted from the state, which follows the name.
const (
	statState = 0
	statGroup = 2
	statStart = 19
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

func dead(f []string) bool { return f[statState] == "Z" || f[statState] == "X" }

var hostID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// members returns the living of a group, and whether that could be found out.
func members(pgid int) ([]member, bool) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	var living []member
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if f := stat(name); f != nil && !dead(f) && f[statGroup] == strconv.Itoa(pgid) {
			living = append(living, member{pid, f[statStart]})
		}
	}
	return living, true
}

// before reports whether a process that began at a is older than one that began
// at b.
func before(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 64)
	n, errB := strconv.ParseUint(b, 10, 64)
	return errA != nil || errB != nil || m < n
}
