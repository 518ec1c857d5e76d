//go:build unix && !linux

package procgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck/payload"
)

// startOf returns when a process began, from ps, which every Unix has; "" if there is
// no such process.
func startOf(pid int) string {
	c := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid))
	c.Env = []string{"LC_ALL=C", "PATH=/bin:/usr/bin"}
	out, err := c.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// hostID returns the machine's name. It does not identify the boot, because there is no
// common way to do that; startOf returns a date, which is not the same after a boot.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// killLeftover waits for the keeper, which kills the process group of its program when
// it has lost its server. If the keeper was killed, too, its processes cannot be found.
func killLeftover(d payload.AgentStarted) (bool, error) {
	found := false
	for begin := time.Now(); startOf(d.PID) == d.Started; found = true {
		if time.Since(begin) > afterKill {
			err := syscall.Kill(d.PID, syscall.SIGKILL)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return true, fmt.Errorf("process %d cannot be killed: %w", d.PID, err)
			}
			return true, nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return found, nil
}

func killMarked(string) (bool, error) { return false, nil }
