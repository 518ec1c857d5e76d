package procgroup

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// self returns the command of the keeper: this binary, even if its file was replaced
// or removed.
func self() (path string, args []string) { return "/proc/self/exe", []string{keeperName} }

// adopt makes this process the parent of every process below it that loses its own.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// programAttr makes the program the leader of a process group, or of a session without a
// terminal if it is apart. The program dies if the keeper is killed.
func programAttr(apart bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !apart, Setsid: apart, Pdeathsig: syscall.SIGKILL}
}

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// signal sends a signal to all processes below the keeper, or only to those in the
// process group of the program. A sandbox gets SIGKILL only: the other signals are for the
// agent in it.
func (k *keeper) signal(s syscall.Signal, group bool) {
	for _, m := range below(os.Getpid()) {
		if k.apart && s != syscall.SIGKILL && m.pid == k.program {
			continue
		}
		if !group || m.group == k.program {
			_ = m.signal(s) // the process may have ended meanwhile
		}
	}
}

// hold keeps a handle of the sandbox, whose process id another process may get later.
func (k *keeper) hold() {
	if !k.apart {
		return
	}
	if fd, err := unix.PidfdOpen(k.program, 0); err == nil {
		k.sandbox = fd
	}
}

// killSandbox kills the sandbox, if the program is one. Its first process ends with it, and
// the system then kills all processes in it at once. To look for them takes longer than a
// fork bomb needs to start more.
func (k *keeper) killSandbox() {
	if k.sandbox != 0 {
		_ = unix.PidfdSendSignal(k.sandbox, unix.SIGKILL, nil, 0) // it may have ended
	}
}

// awaitGroup returns at once: a keeper without children has no processes below it,
// because it adopts them.
func (k *keeper) awaitGroup() {}
