//go:build unix

package pgtest

import (
	"os"
	"syscall"
)

const syscallQuit = syscall.SIGQUIT

// asOther makes a process run as another user if this one is root.
func asOther() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true} // an interrupt of the tests reaches it through Stop only
	dieWithTests(a)
	if os.Getuid() == 0 {
		uid, gid := otherUser()
		a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return a
}
