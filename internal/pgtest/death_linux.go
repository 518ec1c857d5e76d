package pgtest

import "syscall"

// dieWithTests makes the server end when the test binary is killed.
func dieWithTests(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
