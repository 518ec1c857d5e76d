//go:build unix

package procgroup

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// lead makes the program the leader of a group of its own.
func lead(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGTERM) }

func kill(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

// Interrupt sends SIGINT to the group, as Ctrl-C in a terminal does.
func (p *Process) Interrupt() { _ = syscall.Kill(-p.PID(), syscall.SIGINT) }

// alive reports whether anybody of a group is alive. The dead whom nobody has
// fetched count for the system, but not here: where the first process does not
// fetch them, as in many containers, they would stay for ever.
func alive(pgid int) bool {
	if errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) {
		return false
	}
	living, known := members(pgid)
	return !known || len(living) > 0
}

func killLeftover(pid int, started string) (bool, error) {
	if !alive(pid) {
		return false, nil
	}
	if living, known := members(pid); known {
		for _, m := range living {
			if before(m.started, started) {
				return false, nil // it was there first, so the group is another
			}
		}
	} else if startOf(pid) != started {
		return false, nil // without its leader it cannot be told
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("process group %d cannot be killed: %w", pid, err)
	}
	for begin := time.Now(); alive(pid); {
		if time.Since(begin) > afterKill {
			return true, fmt.Errorf("process group %d is still there after it was killed", pid)
		}
		<-time.After(5 * time.Millisecond)
	}
	return true, nil
}

// A member is a living process of a group.
type member struct {
	pid     int
	started string
}
