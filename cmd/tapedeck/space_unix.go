//go:build linux || darwin || freebsd

package main

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes a user can write to the disk of a folder, and whether
// that is known.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
