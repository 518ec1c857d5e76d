package procgroup

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is this binary, also when its file was replaced or removed.
func self() (path string, args []string) { return "/proc/self/exe", []string{keeperName} }

// adopt makes every process below us that loses its parent our child.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// frontAttr makes the program the leader of a group, which dies if we are killed.
func frontAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// signal sends a signal to all processes below us, or to those of the program's
// group only.
func (k *keeper) signal(s syscall.Signal, group bool) {
	for _, m := range below(os.Getpid()) {
		if !group || m.group == k.front {
			_ = m.signal(s) // it may have ended meanwhile
		}
	}
}

// awaitGroup: who has no children has nobody below.
func (k *keeper) awaitGroup() {}
