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

// adopt does nothing, because only Linux supports it. A process that leaves the
// process group of the program is not found.
func adopt() {}

func programAttr(apart bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !apart, Setsid: apart}
}

func dup(from, to int) error { return unix.Dup2(from, to) }

func (k *keeper) signal(s syscall.Signal, _ bool) { _ = syscall.Kill(-k.program, s) }

// hold and killSandbox do nothing, because only Linux has sandboxes.
func (k *keeper) hold()        {}
func (k *keeper) killSandbox() {}

// awaitGroup waits for the processes of the group that are not children of the keeper.
// The system does not reuse the id of a group that exists.
func (k *keeper) awaitGroup() {
	for syscall.Kill(-k.program, 0) == nil {
		<-time.After(20 * time.Millisecond)
	}
}
