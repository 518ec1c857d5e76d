//go:build unix && !linux

package procgroup

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func self() (path string, args []string) {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return path, []string{keeperName}
}

// adopt cannot be done here: who leaves the group of the program is not found.
func adopt() {}

func frontAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dup(from, to int) error { return unix.Dup2(from, to) }

func (k *keeper) signal(s syscall.Signal, _ bool) { _ = syscall.Kill(-k.front, s) }

// awaitGroup waits for those of the group that are not our children. The system
// gives no new process the id of a group that exists.
func (k *keeper) awaitGroup() {
	for syscall.Kill(-k.front, 0) == nil {
		<-time.After(20 * time.Millisecond)
	}
}
