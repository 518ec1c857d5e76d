//go:build unix

package main

import "syscall"

// openFiles returns how many descriptors the process may have, 0 if unknown.
func openFiles() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return uint64(r.Cur) //nolint:unconvert // it is signed on FreeBSD
}
