//go:build unix && !linux

package pgtest

import "syscall"

// dieWithTests does nothing: a server stays if the test binary is killed.
func dieWithTests(*syscall.SysProcAttr) {}
