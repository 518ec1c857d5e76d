//go:build unix && !linux

package procgroup

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// startOf asks ps, which every Unix has, when a process began.
func startOf(pid int) string {
	c := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid))
	c.Env = []string{"LC_ALL=C", "PATH=/bin:/usr/bin"}
	out, err := c.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// hostID is the machine's name only: when it began is not told in the same way
// everywhere, and the time in startOf is a date.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func members(int) ([]member, bool) { return nil, false }

func before(string, string) bool { return false }
