//go:build unix

package main

import "syscall"

// openFiles returns the limit of open files of the process, 0 if unknown.
func openFiles() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return uint64(r.Cur) //nolint:unconvert // Cur is signed on FreeBSD
}
