//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to the user of this process and no other
// user can write it.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}

// An identity distinguishes a file from all others. Getting it costs a third of
// [os.Stat].
type identity struct{ device, inode uint64 }

func identify(path string) (identity, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{uint64(stat.Dev), stat.Ino}, nil //nolint:unconvert // Dev is an int32 on macOS
}

func (i identity) is(other identity) bool { return i == other }
